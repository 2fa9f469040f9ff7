{{- /* Names of resources, as JSON by the keys of `fractions.settings`. */ -}}
{{- define "gpushare.fractions.names" -}}
{{- $given := .Values.fractions.settings -}}
{{- dict
  "count" (get $given "resourceCountName" | default "nvidia.com/gpu")
  "others" (list
    (get $given "resourceMemoryName" | default "nvidia.com/gpumem")
    (get $given "resourceMemoryPercentageName" | default "nvidia.com/gpumem-percentage")
    (get $given "resourceCoreName" | default "nvidia.com/gpucores")
    (get $given "resourcePriorityName" | default "nvidia.com/priority"))
  "units" (get $given "aliyunMemoryName" | default "aliyun.com/gpu-mem")
  "percentage" (get $given "aliyunCoreName" | default "aliyun.com/gpu-core.percentage")
| toJson -}}
{{- end -}}

{{- /* The file of `gpushare scheduler --settings`; empty where nothing is said. */ -}}
{{- define "gpushare.fractions.settings" -}}
{{- $settings := deepCopy .Values.fractions.settings -}}
{{- if .Values.fractions.claimPlainGPU -}}
{{- $_ := set $settings "claimPlainGPU" true -}}
{{- end -}}
{{- if $settings -}}
{{- toYaml $settings -}}
{{- end -}}
{{- end -}}

{{- /* How kube-scheduler asks the extender; the same for a profile of its own and for the cluster's default scheduler. */ -}}
{{- define "gpushare.fractions.extenders" -}}
{{- $names := include "gpushare.fractions.names" . | fromJson -}}
- urlPrefix: {{ printf "https://%s:443" (.Values.fractions.clusterIP | default (printf "gpushare-scheduler.%s.svc" .Release.Namespace)) }}
  enableHTTPS: true
  tlsConfig: {insecure: true}
  httpTimeout: {{ .Values.fractions.httpTimeout }}s
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: bind
  weight: 5
  nodeCacheCapable: true
  managedResources:
  {{- if ne $names.count "nvidia.com/gpu" }}
  - {name: {{ $names.count }}, ignoredByScheduler: true}
  {{- else if .Values.fractions.claimPlainGPU }}
  - {name: {{ $names.count }}}
  {{- end }}
  {{- range $names.others }}
  - {name: {{ . }}, ignoredByScheduler: true}
  {{- end }}
  - {name: {{ $names.units }}{{ if ne $names.units "aliyun.com/gpu-mem" }}, ignoredByScheduler: true{{ end }}}
  - {name: {{ $names.percentage }}, ignoredByScheduler: true}
{{- end -}}
