{{- if .Values.hubble.enabled }}
{{- $ca := genCA "Cilium CA" 1095 }}
{{- $cert := genSignedCert "*.hubble-grpc.cilium.io" nil (list "*.hubble-grpc.cilium.io") 1095 $ca }}
apiVersion: v1
kind: Secret
metadata:
  name: cilium-ca
  namespace: {{ .Release.Namespace }}
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  ca.key: {{ $ca.Key | b64enc }}
---
apiVersion: v1
kind: Secret
metadata:
  name: hubble-server-certs
  namespace: {{ .Release.Namespace }}
type: kubernetes.io/tls
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
---
apiVersion: v1
kind: Service
metadata:
  name: hubble-peer
  namespace: {{ .Release.Namespace }}
spec:
  selector:
    k8s-app: cilium
  ports:
    - name: peer-service
      port: 443
      targetPort: 4244
    - name: plain
      port: 80
  internalTrafficPolicy: Local
{{- if .Values.hubble.relay.enabled }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: hubble-relay
  namespace: {{ .Release.Namespace }}
spec:
  selector:
    matchLabels:
      k8s-app: hubble-relay
  template:
    metadata:
      labels:
        k8s-app: hubble-relay
    spec:
      containers:
        - name: relay
          image: example.org/cilium/hubble-relay
{{- end }}
{{- end }}
