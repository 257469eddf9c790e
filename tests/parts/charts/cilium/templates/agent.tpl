apiVersion: v1
kind: ServiceAccount
metadata:
  name: cilium
  namespace: {{ .Release.Namespace }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: cilium-config
  namespace: {{ .Release.Namespace }}
data:
  ipam: {{ .Values.ipam.mode | quote }}
  debug: {{ .Values.debug | quote }}
  kube-proxy-replacement: {{ .Values.kubeProxyReplacement | quote }}
  enable-hubble: {{ .Values.hubble.enabled | quote }}
  cgroup-root: {{ .Values.cgroup.hostRoot | quote }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: cilium
  labels:
    app.kubernetes.io/part-of: cilium
rules:
  - apiGroups: [""]
    resources: [pods, nodes, namespaces]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: cilium
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: cilium
subjects:
  - kind: ServiceAccount
    name: cilium
    namespace: {{ .Release.Namespace }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: cilium
  namespace: {{ .Release.Namespace }}
  labels:
    k8s-app: cilium
    app.kubernetes.io/name: cilium-agent
spec:
  selector:
    matchLabels:
      k8s-app: cilium
  updateStrategy:
    rollingUpdate:
      maxUnavailable: 2
    type: RollingUpdate
  template:
    metadata:
      annotations:
      labels:
        k8s-app: cilium
    spec:
      securityContext:
        appArmorProfile:
          type: Unconfined
      containers:
        - name: cilium-agent
          image: {{ .Values.image | quote }}
          imagePullPolicy: IfNotPresent
          command: [cilium-agent]
          args: [--config-dir=/tmp/cilium/config-map]
          startupProbe:
            httpGet:
              host: "127.0.0.1"
              path: /healthz
              port: 9879
              scheme: HTTP
            failureThreshold: 105
            periodSeconds: 2
            successThreshold: 1
          livenessProbe:
            httpGet:
              host: "127.0.0.1"
              path: /healthz
              port: 9879
            periodSeconds: 30
          env:
            - name: K8S_NODE_NAME
              valueFrom:
                fieldRef:
                  apiVersion: v1
                  fieldPath: spec.nodeName
            - name: POD_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            - name: GOMEMLIMIT
              valueFrom:
                resourceFieldRef:
                  resource: limits.memory
            - name: EMPTY
              value: ""
          lifecycle:
            preStop:
              exec:
                command: [/cni-uninstall.sh]
          {{- with .Values.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - name: health
              containerPort: 9879
              hostPort: 9879
          securityContext:
            capabilities:
              add:
                {{- toYaml .Values.securityContext.capabilities.ciliumAgent | nindent 16 }}
              drop: [ALL]
          terminationMessagePolicy: FallbackToLogsOnError
          volumeMounts:
            - name: bpf-maps
              mountPath: /sys/fs/bpf
              mountPropagation: HostToContainer
            - name: etc-cni-netd
              mountPath: /host/etc/cni/net.d
            - name: lib-modules
              mountPath: /lib/modules
              readOnly: true
            - name: tls
              mountPath: /var/lib/cilium/tls/hubble
              readOnly: false
      initContainers:
        {{- if .Values.cgroup.autoMount.enabled }}
        - name: mount-cgroup
          image: {{ .Values.image | quote }}
          command: [nsenter]
        {{- end }}
        - name: clean-cilium-state
          image: {{ .Values.image | quote }}
          securityContext:
            capabilities:
              add:
                {{- toYaml .Values.securityContext.capabilities.cleanCiliumState | nindent 16 }}
      restartPolicy: Always
      priorityClassName: system-node-critical
      serviceAccountName: cilium
      automountServiceAccountToken: true
      terminationGracePeriodSeconds: 1
      hostNetwork: true
      nodeSelector:
        kubernetes.io/os: linux
      tolerations:
        - operator: Exists
      volumes:
        - name: bpf-maps
          hostPath:
            path: /sys/fs/bpf
            type: DirectoryOrCreate
        - name: etc-cni-netd
          hostPath:
            path: /etc/cni/net.d
            type: DirectoryOrCreate
        - name: lib-modules
          hostPath:
            path: /lib/modules
        - name: tls
          projected:
            defaultMode: 0400
            sources:
              - secret:
                  name: hubble-server-certs
                  optional: true
                  items:
                    - key: tls.crt
                      path: server.crt
              - downwardAPI:
                  items:
                    - path: namespace
                      fieldRef:
                        fieldPath: metadata.namespace
        - name: scratch
          emptyDir: {}
