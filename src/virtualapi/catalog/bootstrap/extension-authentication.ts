// The ConfigMap from which aggregated API servers learn whose identity headers to trust, as kube-apiserver writes it. It has no
// client-ca-file: certificates of all logical clusters have one authority, so an API server in one must not trust it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { placeholders } from './placeholders.ts'

export function extensionAuthentication(): KubeObject {
  return {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
    data: {
      'requestheader-allowed-names': '["front-proxy-client"]',
      'requestheader-client-ca-file': placeholders.frontProxyCa,
      'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
      'requestheader-group-headers': '["X-Remote-Group"]',
      'requestheader-uid-headers': '["X-Remote-Uid"]',
      'requestheader-username-headers': '["X-Remote-User"]',
    },
  }
}
