"""The messages that kubectl sends as protobuf: fields, numbers and types, as Kubernetes' API states them. Data only.

A message is a line of fields, each `name=number` or `name=number:type`. Without a type it is a text. Types are `int`,
`bool`, `bytes`, `time`, `quantity`, `intstr`, another message, `[type]` for lists and `{type}` for maps with text keys.
A `?` after the type marks a pointer, which means something even when it is zero; anything else that is zero was not set.
"""

from __future__ import annotations

from typing import Final

MESSAGES: Final = {
    "ObjectMeta": (
        "name=1 generateName=2 namespace=3 selfLink=4 uid=5 resourceVersion=6 generation=7:int creationTimestamp=8:time "
        "deletionTimestamp=9:time deletionGracePeriodSeconds=10:int? labels=11:{text} annotations=12:{text} "
        "ownerReferences=13:[OwnerReference] finalizers=14:[text]"
    ),
    "OwnerReference": "kind=1 name=3 uid=4 apiVersion=5 controller=6:bool? blockOwnerDeletion=7:bool?",
    "LabelSelector": "matchLabels=1:{text} matchExpressions=2:[LabelSelectorRequirement]",
    "LabelSelectorRequirement": "key=1 operator=2 values=3:[text]",
    "DeleteOptions": (
        "gracePeriodSeconds=1:int? preconditions=2:Preconditions orphanDependents=3:bool? propagationPolicy=4 dryRun=5:[text]"
    ),
    "Preconditions": "uid=1 resourceVersion=2",
    "ObjectReference": "kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7",
    "LocalObjectReference": "name=1",
    "ConfigMap": "metadata=1:ObjectMeta data=2:{text} binaryData=3:{bytes} immutable=4:bool?",
    "Secret": "metadata=1:ObjectMeta data=2:{bytes} type=3 stringData=4:{text} immutable=5:bool?",
    "Namespace": "metadata=1:ObjectMeta spec=2:NamespaceSpec status=3:NamespaceStatus",
    "NamespaceSpec": "finalizers=1:[text]",
    "NamespaceStatus": "phase=1",
    "ServiceAccount": (
        "metadata=1:ObjectMeta secrets=2:[ObjectReference] imagePullSecrets=3:[LocalObjectReference] "
        "automountServiceAccountToken=4:bool?"
    ),
    "Service": "metadata=1:ObjectMeta spec=2:ServiceSpec",
    "ServiceSpec": (
        "ports=1:[ServicePort] selector=2:{text} clusterIP=3 type=4 externalIPs=5:[text] sessionAffinity=7 externalName=10 "
        "externalTrafficPolicy=11 publishNotReadyAddresses=13:bool ipFamilyPolicy=17 clusterIPs=18:[text] "
        "ipFamilies=19:[text] internalTrafficPolicy=22"
    ),
    "ServicePort": "name=1 protocol=2 port=3:int targetPort=4:intstr nodePort=5:int appProtocol=6",
    "Pod": "metadata=1:ObjectMeta spec=2:PodSpec",
    "PodTemplateSpec": "metadata=1:ObjectMeta spec=2:PodSpec",
    "PodSpec": (
        "volumes=1:[Volume] containers=2:[Container] restartPolicy=3 terminationGracePeriodSeconds=4:int? "
        "activeDeadlineSeconds=5:int? dnsPolicy=6 nodeSelector=7:{text} serviceAccountName=8 serviceAccount=9 nodeName=10 "
        "hostNetwork=11:bool hostPID=12:bool hostIPC=13:bool imagePullSecrets=15:[LocalObjectReference] hostname=16 "
        "subdomain=17 schedulerName=19 initContainers=20:[Container] automountServiceAccountToken=21:bool? "
        "tolerations=22:[Toleration] priorityClassName=24 priority=25:int? runtimeClassName=29 enableServiceLinks=30:bool?"
    ),
    "Volume": "name=1 source=2:VolumeSource",
    "VolumeSource": "hostPath=1:HostPathVolumeSource? emptyDir=2:EmptyDirVolumeSource?",
    "HostPathVolumeSource": "path=1 type=2:text?",
    "EmptyDirVolumeSource": "medium=1 sizeLimit=2:quantity",
    "Container": (
        "name=1 image=2 command=3:[text] args=4:[text] workingDir=5 ports=6:[ContainerPort] env=7:[EnvVar] "
        "resources=8:ResourceRequirements volumeMounts=9:[VolumeMount] terminationMessagePath=13 imagePullPolicy=14 "
        "stdin=16:bool stdinOnce=17:bool tty=18:bool terminationMessagePolicy=20"
    ),
    "ContainerPort": "name=1 hostPort=2:int containerPort=3:int protocol=4 hostIP=5",
    "EnvVar": "name=1 value=2",
    "ResourceRequirements": "limits=1:{quantity} requests=2:{quantity}",
    "VolumeMount": "name=1 readOnly=2:bool mountPath=3 subPath=4",
    "Toleration": "key=1 operator=2 value=3 effect=4 tolerationSeconds=5:int?",
    "Deployment": "metadata=1:ObjectMeta spec=2:DeploymentSpec",
    "DeploymentSpec": (
        "replicas=1:int? selector=2:LabelSelector template=3:PodTemplateSpec strategy=4:DeploymentStrategy "
        "minReadySeconds=5:int revisionHistoryLimit=6:int? paused=7:bool progressDeadlineSeconds=9:int?"
    ),
    "DeploymentStrategy": "type=1 rollingUpdate=2:RollingUpdateDeployment",
    "RollingUpdateDeployment": "maxUnavailable=1:intstr? maxSurge=2:intstr?",
    "Job": "metadata=1:ObjectMeta spec=2:JobSpec",
    "JobSpec": (
        "parallelism=1:int? completions=2:int? activeDeadlineSeconds=3:int? selector=4:LabelSelector manualSelector=5:bool? "
        "template=6:PodTemplateSpec backoffLimit=7:int? ttlSecondsAfterFinished=8:int? completionMode=9 suspend=10:bool?"
    ),
    "Role": "metadata=1:ObjectMeta rules=2:[PolicyRule]",
    "ClusterRole": "metadata=1:ObjectMeta rules=2:[PolicyRule] aggregationRule=3:AggregationRule",
    "AggregationRule": "clusterRoleSelectors=1:[LabelSelector]",
    "PolicyRule": "verbs=1:[text] apiGroups=2:[text] resources=3:[text] resourceNames=4:[text] nonResourceURLs=5:[text]",
    "RoleBinding": "metadata=1:ObjectMeta subjects=2:[Subject] roleRef=3:RoleRef",
    "ClusterRoleBinding": "metadata=1:ObjectMeta subjects=2:[Subject] roleRef=3:RoleRef",
    "Subject": "kind=1 apiGroup=2 name=3 namespace=4",
    "RoleRef": "apiGroup=1 kind=2 name=3",
    "SelfSubjectReview": "metadata=1:ObjectMeta",
    "SelfSubjectAccessReview": "metadata=1:ObjectMeta spec=2:AccessReviewSpec",
    "SubjectAccessReview": "metadata=1:ObjectMeta spec=2:AccessReviewSpec",
    "LocalSubjectAccessReview": "metadata=1:ObjectMeta spec=2:AccessReviewSpec",
    "AccessReviewSpec": (
        "resourceAttributes=1:ResourceAttributes nonResourceAttributes=2:NonResourceAttributes user=3 groups=4:[text] uid=6"
    ),
    "ResourceAttributes": "namespace=1 verb=2 group=3 version=4 resource=5 subresource=6 name=7",
    "NonResourceAttributes": "path=1 verb=2",
    "SelfSubjectRulesReview": "metadata=1:ObjectMeta spec=2:SelfSubjectRulesReviewSpec",
    "SelfSubjectRulesReviewSpec": "namespace=1",
    "TokenRequest": "metadata=1:ObjectMeta spec=2:TokenRequestSpec",
    "TokenRequestSpec": "audiences=1:[text] boundObjectRef=3:BoundObjectReference expirationSeconds=4:int?",
    "BoundObjectReference": "kind=1 apiVersion=2 name=3 uid=4",
    "Eviction": "metadata=1:ObjectMeta deleteOptions=2:DeleteOptions",
    "PriorityClass": "metadata=1:ObjectMeta value=2:int globalDefault=3:bool description=4 preemptionPolicy=5",
    "ResourceQuota": "metadata=1:ObjectMeta spec=2:ResourceQuotaSpec",
    "ResourceQuotaSpec": "hard=1:{quantity} scopes=2:[text]",
    "PodDisruptionBudget": "metadata=1:ObjectMeta spec=2:PodDisruptionBudgetSpec",
    "PodDisruptionBudgetSpec": (
        "minAvailable=1:intstr? selector=2:LabelSelector maxUnavailable=3:intstr? unhealthyPodEvictionPolicy=4"
    ),
}
INLINED: Final = frozenset({("Volume", "source")})
"""Fields whose content JSON has in their parent's place."""
