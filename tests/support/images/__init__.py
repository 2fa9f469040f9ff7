"""Container images without a container tool: root file systems from what this machine has, packed as OCI archives.

Belongs here: what goes into an image, and the format. Does not belong here: who runs the images.
"""
