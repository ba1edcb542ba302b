// Objects that the server takes, of kinds of which the corpus has none that a tenant may create: what subresources are
// tried on.

const request = [
  ...['-----BEGIN CERTIFICATE REQUEST-----', 'MIHnMIGOAgEAMCwxDTALBgNVBAoMBGRldnMxDDAKBgNVBAoMA29wczENMAsGA1UE'],
  ...[
    'AwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMJU+oQV5wsCyIJZvm35',
    'gQZymSojuDMPHJT8wRH2osQ+0lEojAhJoHs7oIlVGZhBvYG/M+T2+u11yGqmOPvF',
  ],
  ...[
    'n7ygADAKBggqhkjOPQQDAgNIADBFAiEAp+owfSNLSTSIjU1jWzPYf6p4qE3yK4Cb',
    'ghkQImxVoE4CIGu+FO/ZCY/7FPBM2TsyJXQX9TkxrWBRKG1FLuB2d3fK',
  ],
  '-----END CERTIFICATE REQUEST-----\n',
].join('\n')

interface GoodObject {
  readonly kind: string
  /** Absent: any name is allowed. */
  readonly name?: string
  readonly spec: object
}

const labels = { app: 'amplified' }

const objects: readonly (GoodObject & { readonly apiVersion: string })[] = [
  {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'example.test/a:1' }] } },
    },
  },
  {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    name: 'amplified.example.com',
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'amplified', singular: 'amplified', kind: 'Amplified', listKind: 'AmplifiedList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  },
  {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'PriorityLevelConfiguration',
    spec: { type: 'Limited', limited: { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } } },
  },
  { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', spec: { cidrs: ['10.99.0.0/24'] } },
  {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    spec: { request: Buffer.from(request).toString('base64'), signerName: 'example.com/x', usages: ['client auth'] },
  },
  {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    name: 'v1.amplified.example.com',
    spec: {
      group: 'amplified.example.com',
      version: 'v1',
      groupPriorityMinimum: 1000,
      versionPriority: 10,
      service: { namespace: 'default', name: 'amplified' },
    },
  },
]

/** By apiVersion and kind: `apps/v1 DaemonSet`. */
export const goodObjects: ReadonlyMap<string, Record<string, unknown>> = new Map(
  objects.map(({ name, ...object }) => [
    `${object.apiVersion} ${object.kind}`,
    { ...object, metadata: name === undefined ? {} : { name } },
  ]),
)
