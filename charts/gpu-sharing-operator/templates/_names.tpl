{{- /* Labels of the objects themselves; never in a pod template, where another version would restart pods. */ -}}
{{- define "gpushare.labels" -}}
app.kubernetes.io/name: gpu-sharing-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "gpushare.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Where and as whom the pods of this chart run. */ -}}
{{- define "gpushare.pod" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
{{- with .Values.tolerations }}
{{ toYaml . }}
{{- end }}
# Where all nodes give out fractions, it would run nowhere otherwise.
- {key: gpushare.dev/fractions, operator: Exists, effect: NoSchedule}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* What makes an object one of an uninstall; a weight follows. */ -}}
{{- define "gpushare.hook" -}}
{{- include "gpushare.hookOf" (list . "pre-delete") -}}
{{- end -}}

{{- /* The same of any hook. */ -}}
{{- define "gpushare.hookOf" -}}
labels: {{- include "gpushare.labels" (first .) | nindent 2 }}
annotations:
  helm.sh/hook: {{ last . }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
