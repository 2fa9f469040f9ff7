#!/bin/bash
# Process 1 of a cluster's namespaces: lays out mounts and network, says so, and from then on only takes away what has ended.
# holder.sh STATE NODE_IP PAUSE; started by namespaces.py in new network, mount and process namespaces.
set -euo pipefail
state=$1 node_ip=$2 pause=$3

# Private towards the machine, shared towards containers: mounts of the kubelet reach them.
mount --make-rslave /
mount --make-rshared /
for folder in lib log; do
  mkdir -p "$state/$folder"
  mount --bind "$state/$folder" "/var/$folder"
done
mkdir -p /var/lib/{kubelet,cni} /var/log/{containers,pods}
mount -t tmpfs -o mode=755 tmpfs /run
# Devices of its own, to which those of GPUs can be added.
mkdir -p /run/dev
mount -t tmpfs -o mode=755 tmpfs /run/dev
cp -a /dev/{fd,full,kmsg,null,ptmx,random,tty,urandom,zero} /run/dev
mkdir /run/dev/{pts,shm}
mount --bind /dev/pts /run/dev/pts
mount --rbind /run/dev /dev
umount -l /run/dev

ip link set lo up
# Not every kernel has dummy devices. The route leads nowhere, but addresses of services need one.
ip link add node0 type veth peer name nowhere0
ip link set nowhere0 up
ip link set node0 up
ip addr add "$node_ip/32" dev node0
ip route add default dev node0 src "$node_ip"
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.route_localnet=1
sysctl -qw net.bridge.bridge-nf-call-iptables=1 2>/dev/null || true # where bridges are filtered at all

echo ready
exec "$pause"
