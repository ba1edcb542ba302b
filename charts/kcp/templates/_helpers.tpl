{{/* Our processes and their keys are always here, whatever namespace the release is recorded in. */}}
{{- define "kcp.namespace" -}}kcp-system{{- end }}

{{- define "kcp.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Call with (dict "root" $ "component" "apiserver"). */}}
{{- define "kcp.selectorLabels" -}}
app.kubernetes.io/name: kcp
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "kcp.labels" -}}
{{ include "kcp.selectorLabels" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Kept by kcp apiserver: a client certificate that may read its metrics. */}}
{{- define "kcp.metricsClientSecret" -}}kcp-metrics-client{{- end }}

{{- define "kcp.directHost" -}}
{{ .Values.direct.host | default (printf "kcp-apiserver.%s.svc" (include "kcp.namespace" .)) }}
{{- end }}

{{/* What PodSecurity "restricted" asks of a pod and of a container. */}}
{{- define "kcp.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "kcp.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What all pods share. Call with (dict "root" $ "component" NAME "values" VALUES). */}}
{{- define "kcp.podSpec" -}}
serviceAccountName: kcp-{{ .component }}
securityContext:
  {{- include "kcp.podSecurityContext" . | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kcp.selectorLabels" . | nindent 8 }}
{{- end }}

{{/* Empty without an endpoint. A number of values.yaml may be a float. */}}
{{- define "kcp.tracingArgs" -}}
{{- with .Values.tracing.endpoint -}}
- --tracing-endpoint={{ . }}
- --tracing-sampling-rate-per-million={{ $.Values.tracing.samplingRatePerMillion | int64 }}
{{- end }}
{{- end }}

{{/* Empty with the defaults. */}}
{{- define "kcp.consoleArgs" -}}
{{- if not .Values.console.enabled -}}
- --no-console
{{- else if .Values.console.host -}}
- --console-origin=https://{{ .Values.console.host }}
{{- end }}
{{- end }}

{{/* Flags of the etcd with the logical clusters. */}}
{{- define "kcp.etcdArgs" -}}
{{- with (.Values.storage).etcd -}}
{{- if .servers -}}
{{- if eq $.Values.storage.mode "embedded" }}{{ fail "storage.etcd needs storage.mode host" }}{{ end -}}
{{- if and .user (not .secretName) }}{{ fail "storage.etcd.user needs storage.etcd.secretName, a Secret with key password" }}{{ end -}}
- --store=etcd
- --etcd-servers={{ join "," .servers }}
- --etcd-prefix={{ .prefix }}
- --etcd-compaction-interval={{ .compactionInterval }}
{{- if and .secretName (hasPrefix "https:" (first .servers)) }}
- --etcd-cafile=/etc/kcp/etcd/ca.crt
{{- if .clientCertificate }}
- --etcd-certfile=/etc/kcp/etcd/tls.crt
- --etcd-keyfile=/etc/kcp/etcd/tls.key
{{- end }}
{{- end }}
{{- with .user }}
- --etcd-user={{ . }}
- --etcd-password-file=/etc/kcp/etcd/password
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kcp.etcdMount" -}}
{{- with (.Values.storage).etcd -}}
{{- if and .servers .secretName -}}
- {name: etcd, mountPath: /etc/kcp/etcd, readOnly: true}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kcp.etcdVolume" -}}
{{- with (.Values.storage).etcd -}}
{{- if and .servers .secretName -}}
- {name: etcd, secret: {secretName: {{ .secretName }}, defaultMode: 288}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Not empty if there is an AuthenticationConfiguration. */}}
{{- define "kcp.authentication" -}}
{{- with .Values.authentication -}}
{{- $given := compact (list (ternary "config" "" (not (empty .config))) .configMapName .secretName) -}}
{{- if gt (len $given) 1 -}}
{{- fail "authentication: give one of config, configMapName and secretName" -}}
{{- end -}}
{{- join "" $given -}}
{{- end -}}
{{- end }}

{{- define "kcp.authenticationArgs" -}}
{{- if include "kcp.authentication" . -}}
- --authentication-config=/etc/kcp/authentication/authentication.yaml
{{- end }}
{{- end }}

{{- define "kcp.authenticationMount" -}}
{{- if include "kcp.authentication" . -}}
- {name: authentication, mountPath: /etc/kcp/authentication, readOnly: true}
{{- end }}
{{- end }}

{{/* The whole folder is mounted: a single file would not follow changes. */}}
{{- define "kcp.authenticationVolume" -}}
{{- if include "kcp.authentication" . -}}
- name: authentication
  {{- with .Values.authentication }}
  {{- if .secretName }}
  secret: {secretName: {{ .secretName }}, items: [{key: authentication.yaml, path: authentication.yaml}]}
  {{- else }}
  configMap: {name: {{ .configMapName | default "kcp-authentication" }}, items: [{key: authentication.yaml, path: authentication.yaml}]}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Call with the port's name. */}}
{{- define "kcp.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 2
  failureThreshold: 150
readinessProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /livez, port: https, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
{{- end }}
