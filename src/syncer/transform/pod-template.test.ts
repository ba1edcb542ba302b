import fc from 'fast-check'
import { expect } from 'chai'
import { clusterLabel, templateChangesAnnotation } from '#crds/index.ts'
import { namespaceLabel } from './dependents-down.ts'
import { apiAccessVolume, podTemplateDown, podTemplateUp, type PodContext } from './pod-template.ts'
import type { ContainerSpec, EnvVar, PodTemplate } from './pod-types.ts'

const context: PodContext = {
  namespace: 'shop',
  audience: 'abcdefghij.klmnopqrst',
  apiAddress: { host: 'api.example', port: 7443 },
  nameserver: { address: '10.96.0.53', domain: 'abcdefghij.kcp' },
}
const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'
const containers = (env?: EnvVar[]): ContainerSpec[] => [{ name: 'c', image: 'i', ...(env && { env }) }]

describe('pod templates on the way down', () => {
  it('mount a token for our audience instead of the member’s own', () => {
    const { spec } = podTemplateDown({ spec: { containers: containers() } }, context)
    expect(spec.automountServiceAccountToken).to.equal(false)
    expect(spec.containers[0]!.volumeMounts).to.deep.equal([
      { name: apiAccessVolume, mountPath: accountDirectory, readOnly: true },
    ])
    expect(JSON.stringify(spec.volumes)).to.contain('"audience":"abcdefghij.klmnopqrst"')
  })
  it('keep affinity to namespaces inside the logical cluster, and it is the tenant’s again on the way up', () => {
    const term = (more: object): object => ({ topologyKey: 'kubernetes.io/hostname', labelSelector: {}, ...more })
    const affinity = {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, podAffinityTerm: term({ namespaceSelector: { matchLabels: { team: 'a' } } }) },
        ],
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          term({}),
          term({ namespaces: ['shop', 'kube-system'] }),
          term({ namespaceSelector: {} }),
        ],
      },
    }
    const template = { spec: { containers: containers(), affinity } }
    const down = podTemplateDown(template, context)
    expect(down.spec['affinity']).to.deep.equal({
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 1,
            podAffinityTerm: term({
              namespaceSelector: { matchLabels: { [namespaceLabel('team')]: 'a', [clusterLabel]: 'abcdefghij' } },
            }),
          },
        ],
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          term({}),
          term({ namespaces: ['abcdefghij-shop', 'abcdefghij-kube-system'] }),
          term({ namespaceSelector: { matchLabels: { [clusterLabel]: 'abcdefghij' } } }),
        ],
      },
    })
    expect(podTemplateUp(down)).to.deep.equal(template)
  })
  for (const { title, automount, accountAutomount, mounted } of [
    { title: 'no token if the pod forbids it', automount: false, mounted: false },
    { title: 'no token if the ServiceAccount forbids it', accountAutomount: false, mounted: false },
    {
      title: 'a token if the pod asks for it and its ServiceAccount forbids it',
      automount: true,
      accountAutomount: false,
      mounted: true,
    },
  ] as { title: string; automount?: boolean; accountAutomount?: boolean; mounted: boolean }[]) {
    it(`mount ${title}`, () => {
      const template = {
        spec: { containers: containers(), ...(automount !== undefined && { automountServiceAccountToken: automount }) },
      }
      const { spec } = podTemplateDown(template, {
        ...context,
        ...(accountAutomount !== undefined && { accountAutomount }),
      })
      expect(spec.volumes?.some(({ name }) => name === apiAccessVolume) ?? false).to.equal(mounted)
    })
  }
  it('point pods to the API of their logical cluster, unless they name another one', () => {
    const { spec } = podTemplateDown({ spec: { containers: containers() } }, context)
    expect(spec.containers[0]!.env).to.deep.equal([
      { name: 'KUBERNETES_SERVICE_HOST', value: 'api.example' },
      { name: 'KUBERNETES_SERVICE_PORT', value: '7443' },
    ])
    const own = podTemplateDown(
      { spec: { containers: containers([{ name: 'KUBERNETES_SERVICE_HOST', value: 'mine' }]) } },
      context,
    )
    expect(own.spec.containers[0]!.env).to.deep.equal([{ name: 'KUBERNETES_SERVICE_HOST', value: 'mine' }])
  })
  it('have no tokens for any API but that of their logical cluster', () => {
    for (const audience of [undefined, 'https://kubernetes.default.svc', 'vault']) {
      const token = { path: 'token', ...(audience !== undefined && { audience }) }
      const volumes = [{ name: 't', projected: { sources: [{ serviceAccountToken: token }] } }]
      const { spec } = podTemplateDown({ spec: { containers: containers(), volumes } }, context)
      expect(spec.volumes?.[0]?.projected?.sources?.[0]?.serviceAccountToken?.audience).to.equal(context.audience)
    }
  })
  it('have no token for the member, whatever the name of a volume is and whoever mounts it', () => {
    for (const name of [apiAccessVolume, `${apiAccessVolume}-2`, 'kube-api-access-abcde', 'x'])
      for (const automount of [undefined, true, false])
        for (const mounts of [[], [{ name, mountPath: accountDirectory }], [{ name, mountPath: '/elsewhere' }]])
          for (const audience of [undefined, 'https://kubernetes.default.svc', context.audience]) {
            const what = JSON.stringify({ name, automount, mounts, audience })
            const source = { serviceAccountToken: { path: 'token', ...(audience && { audience }) } }
            const template: PodTemplate = {
              spec: {
                ...(automount !== undefined && { automountServiceAccountToken: automount }),
                initContainers: [{ name: 'i', image: 'i', volumeMounts: mounts }],
                containers: [{ name: 'c', image: 'i', volumeMounts: mounts }],
                volumes: [
                  { name, projected: { sources: [source, source] } },
                  { name: 'y', emptyDir: {} },
                ],
              },
            }
            const down = podTemplateDown(template, context)
            const volumes = down.spec.volumes ?? []
            const tokens = volumes.flatMap(({ projected }) =>
              (projected?.sources ?? []).flatMap((one) => (one.serviceAccountToken ? [one.serviceAccountToken] : [])),
            )
            expect(tokens.length, what).to.be.greaterThan(1)
            for (const one of tokens) expect(one.audience, what).to.equal(context.audience)
            expect(new Set(volumes.map((one) => one.name)).size, what).to.equal(volumes.length)
            expect(podTemplateUp(down), what).to.deep.equal(template)
          }
  })
  it('have no credentials of sources that are not known, such as certificates of a signer of the member', () => {
    const sources = [
      { podCertificate: { signerName: 'kubernetes.io/kube-apiserver-client-pod', keyType: 'ED25519' } },
      { somethingNew: { path: 'x' } },
      { configMap: { name: 'settings' } },
    ]
    const template: PodTemplate = {
      spec: { containers: containers(), volumes: [{ name: 'v', projected: { sources } }] },
    }
    const down = podTemplateDown(template, context)
    expect(down.spec.volumes?.[0]?.projected?.sources).to.deep.equal([{}, {}, { configMap: { name: 'settings' } }])
    expect(podTemplateUp(down)).to.deep.equal(template)
  })
  it('have claims that name no volume of the member, and no annotations that its controllers act on', () => {
    const claim = {
      metadata: {
        labels: { app: 'web' },
        annotations: {
          'pv.kubernetes.io/bind-completed': 'yes',
          'pv.kubernetes.io/bound-by-controller': 'yes',
          team: 'blue',
        },
        finalizers: ['a.example/b'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        volumeName: 'disk-of-an-admin',
        dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'x', namespace: 'kube-system' },
      },
    }
    const template: PodTemplate = {
      spec: {
        containers: containers(),
        volumes: [
          { name: 'v', emptyDir: {} },
          { name: 'data', ephemeral: { volumeClaimTemplate: claim } },
        ],
      },
    }
    const down = podTemplateDown(template, context)
    expect(down.spec.volumes?.[1]?.['ephemeral']).to.deep.equal({
      volumeClaimTemplate: {
        metadata: { labels: { app: 'web' }, annotations: { team: 'blue' } },
        spec: { accessModes: ['ReadWriteOnce'] },
      },
    })
    expect(podTemplateUp(down)).to.deep.equal(template)
    // The member's admission may put a volume before those of the tenant.
    const added = {
      ...down,
      spec: { ...down.spec, volumes: [{ name: 'of-the-member' }, ...(down.spec.volumes ?? [])] },
    }
    const volume = (of: PodTemplate): unknown => of.spec.volumes?.find(({ name }) => name === 'data')
    expect(volume(podTemplateUp(added))).to.deep.equal(volume(template))
  })
  it('have no finalizers and owners, which the member would give to pods', () => {
    const metadata = { name: 'x', finalizers: ['a.example/b'], ownerReferences: [], labels: { app: 'a' } }
    const template = { metadata, spec: { containers: containers() } }
    const down = podTemplateDown(template, context)
    expect(down.metadata).to.have.all.keys('name', 'labels', 'annotations')
    expect(podTemplateUp(down)).to.deep.equal(template)
  })
  it('trust the CA of their own API server where they mount it', () => {
    const volumes = [
      { name: 'a', configMap: { name: 'kube-root-ca.crt' } },
      { name: 'b', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } },
    ]
    const { spec } = podTemplateDown({ spec: { containers: containers(), volumes } }, context)
    expect(JSON.stringify(spec.volumes)).to.not.contain('kube-root-ca.crt')
  })
  it('do not push out what the member itself runs', () => {
    for (const priorityClassName of ['system-cluster-critical', 'system-node-critical']) {
      const { spec } = podTemplateDown(
        { spec: { containers: containers(), priorityClassName, priority: 2e9 } },
        context,
      )
      expect(spec).to.not.have.any.keys('priorityClassName', 'priority')
    }
  })
  it('carry no annotations that controllers of the member act on', () => {
    const annotations = {
      'iam.amazonaws.com/role': 'admin',
      'kubectl.kubernetes.io/restartedAt': 'now',
      'kcp.dev/locator': '{}',
    }
    const { metadata } = podTemplateDown({ metadata: { annotations }, spec: { containers: containers() } }, context)
    expect(metadata?.annotations).to.have.all.keys('kubectl.kubernetes.io/restartedAt', templateChangesAnnotation)
  })
  it('show pods their upstream namespace', () => {
    const { spec } = podTemplateDown(
      {
        spec: {
          containers: containers([{ name: 'NS', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }]),
        },
      },
      context,
    )
    expect(spec.containers[0]!.env?.find(({ name }) => name === 'NS')).to.deep.equal({ name: 'NS', value: 'shop' })
  })
  it('use our nameserver only with cluster DNS and without the host network', () => {
    expect(podTemplateDown({ spec: { containers: containers() } }, context).spec.dnsConfig?.searches?.[0]).to.equal(
      'shop.abcdefghij.kcp',
    )
    for (const part of [{ dnsPolicy: 'Default' }, { dnsPolicy: 'None' }, { hostNetwork: true }]) {
      expect(podTemplateDown({ spec: { containers: containers(), ...part } }, context).spec.dnsConfig).to.equal(
        undefined,
      )
    }
  })
})

/** Of annotations that go down, that do not, and that are absent. */
const annotationPaths = ['checksum/config', 'x/y', 'absent/z'].map((one) => `metadata.annotations['${one}']`)
const name = fc.constantFrom('a', 'b', 'KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT', 'NS')
const envVar: fc.Arbitrary<EnvVar> = fc.oneof(
  fc.record({ name, value: fc.constantFrom('', 'x', 'shop') }),
  fc.record({
    name,
    valueFrom: fc.record({
      fieldRef: fc.constantFrom(
        { fieldPath: 'metadata.namespace' },
        { fieldPath: 'metadata.namespace', apiVersion: 'v1' },
        { fieldPath: 'metadata.name' },
        ...annotationPaths.map((fieldPath) => ({ fieldPath })),
      ),
    }),
  }),
)
// Names may repeat: create accepts that.
const envList = fc.array(envVar, { maxLength: 5 })
const volume = fc.oneof(
  fc.record({ name: fc.constant('v1'), emptyDir: fc.constant({}) }),
  fc.record({
    name: fc.constant('v2'),
    downwardAPI: fc.record({
      items: fc.array(
        fc.record({
          path: fc.constant('p'),
          fieldRef: fc.record({
            fieldPath: fc.constantFrom('metadata.namespace', 'metadata.labels', ...annotationPaths),
          }),
        }),
        { maxLength: 2 },
      ),
    }),
  }),
  fc.record({
    name: fc.constant('v3'),
    projected: fc.record({
      sources: fc.array(
        fc.record({
          downwardAPI: fc.record({
            items: fc.constant([{ path: 'n', fieldRef: { fieldPath: 'metadata.namespace' } }]),
          }),
        }),
        { maxLength: 2 },
      ),
    }),
  }),
  fc.record({
    name: fc.constant('v4'),
    projected: fc.record({
      sources: fc.array(
        fc.record({
          serviceAccountToken: fc.record(
            { path: fc.constant('t'), audience: fc.constantFrom('vault', context.audience) },
            { requiredKeys: ['path'] },
          ),
        }),
        { maxLength: 2 },
      ),
    }),
  }),
)
const claimVolume = fc.record({
  name: fc.constantFrom('v6', apiAccessVolume),
  ephemeral: fc.record({
    volumeClaimTemplate: fc.record(
      {
        metadata: fc.record(
          {
            annotations: fc.dictionary(fc.constantFrom('pv.kubernetes.io/x', 'team', 'checksum/x'), fc.constant('v')),
            labels: fc.constant({ app: 'a' }),
            finalizers: fc.constant(['x/y']),
          },
          { requiredKeys: [] },
        ),
        spec: fc.record(
          { accessModes: fc.constant(['ReadWriteOnce']), volumeName: fc.constant('disk') },
          { requiredKeys: ['accessModes'] },
        ),
      },
      { requiredKeys: ['spec'] },
    ),
  }),
})
const rootCaVolume = fc.oneof(
  fc.record({
    name: fc.constant('v5'),
    configMap: fc.record({ name: fc.constantFrom('kube-root-ca.crt', 'settings') }),
  }),
  fc.record({
    name: fc.constant('v5'),
    projected: fc.record({
      sources: fc.array(
        fc.record({ configMap: fc.record({ name: fc.constantFrom('kube-root-ca.crt', 'settings') }) }),
        { maxLength: 2 },
      ),
    }),
  }),
)
const container = (names: string[]) =>
  fc.record(
    {
      name: fc.constantFrom(...names),
      image: fc.constant('i'),
      env: envList,
      volumeMounts: fc.array(
        fc.record({ name: fc.constant('v1'), mountPath: fc.constantFrom('/data', accountDirectory) }),
        { maxLength: 2 },
      ),
    },
    { requiredKeys: ['name', 'image'] },
  )
const containersOf = (names: string[]) =>
  fc.uniqueArray(container(names), { selector: (one) => one.name, minLength: 1, maxLength: names.length })
const stringMap = fc.dictionary(fc.constantFrom('app', 'tier', 'x/y', 'checksum/config'), fc.constantFrom('', 'v'))
const templates = fc.record(
  {
    metadata: fc.record(
      {
        labels: stringMap,
        annotations: stringMap,
        finalizers: fc.constant(['x/y']),
        creationTimestamp: fc.constant(null),
      },
      { requiredKeys: [] },
    ),
    spec: fc.record(
      {
        automountServiceAccountToken: fc.boolean(),
        hostNetwork: fc.boolean(),
        setHostnameAsFQDN: fc.boolean(),
        priorityClassName: fc.constantFrom('batch', 'system-cluster-critical'),
        priority: fc.constantFrom(0, 2_000_000_000),
        dnsPolicy: fc.constantFrom('ClusterFirst', 'Default', 'None'),
        dnsConfig: fc.record(
          { searches: fc.constant(['corp.example']), options: fc.constantFrom([], [{ name: 'ndots', value: '2' }]) },
          { requiredKeys: [] },
        ),
        volumes: fc.uniqueArray(fc.oneof(volume, rootCaVolume, claimVolume), { selector: (one) => one.name }),
        preemptionPolicy: fc.constantFrom('Never', 'PreemptLowerPriority'),
        nodeSelector: fc.constantFrom({}, { disk: 'ssd' }, { 'kcp.dev/asleep': 'no' }),
        initContainers: containersOf(['i1', 'i2']),
        containers: containersOf(['c1', 'c2']),
      },
      { requiredKeys: ['containers'] },
    ),
  },
  { requiredKeys: ['spec'] },
) as unknown as fc.Arbitrary<PodTemplate>

describe('pod templates down and up again', () => {
  it('are unchanged', () => {
    fc.assert(
      fc.property(
        templates,
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        (template, hasNameserver, hostnameIsShort, sleeps) => {
          const { nameserver: _, ...plain } = context
          const asleep = sleeps ? { isAsleep: true as const } : {}
          const down = podTemplateDown(template, { ...(hasNameserver ? context : plain), ...asleep, hostnameIsShort })
          expect(podTemplateUp(down)).to.deep.equal(template)
          if (sleeps) expect(down.spec['nodeSelector']).to.include({ 'kcp.dev/asleep': 'true' })
        },
      ),
      { numRuns: 1000 },
    )
  })
  it('give each variable and each file of the downward API what it has in the logical cluster', () => {
    const field = (fieldPath: string): EnvVar['valueFrom'] => ({ fieldRef: { fieldPath } })
    const annotations = { 'x/y': '1 $(HOME) $$', team: 'blue' }
    const files = ['x/y', 'team'].map((one) => ({
      path: one,
      fieldRef: { fieldPath: `metadata.annotations['${one}']` },
    }))
    const template: PodTemplate = {
      metadata: { annotations },
      spec: {
        containers: containers([
          { name: 'A', valueFrom: field("metadata.annotations['x/y']")! },
          { name: 'B', valueFrom: field("metadata.annotations['team']")! },
        ]),
        volumes: [{ name: 'info', downwardAPI: { items: files } }],
      },
    }
    const down = podTemplateDown(template, context)
    const [first, second] = (down.spec.containers[0]?.env ?? []).slice(-2)
    expect(first?.value).to.equal('1 $$(HOME) $$$$')
    expect(second).to.deep.equal({ name: 'B', valueFrom: field("metadata.annotations['team']") })
    const read = (down.spec.volumes?.[0]?.downwardAPI?.items ?? []).map(({ fieldRef }) => {
      const name = /'(.*)'/.exec(fieldRef?.fieldPath ?? '')?.[1] ?? ''
      return down.metadata?.annotations?.[name]
    })
    expect(read).to.deep.equal([annotations['x/y'], 'blue'])
    expect(down.metadata?.annotations).to.not.have.property('x/y')
    expect(podTemplateUp(down)).to.deep.equal(template)
  })
  it('are equal for an equal context, so that no needless rollout begins', () => {
    fc.assert(
      fc.property(templates, (template) => {
        const [first, second] = [template, structuredClone(template)].map((one) =>
          JSON.stringify(podTemplateDown(one, context)),
        )
        expect(first).to.equal(second)
      }),
    )
  })
  it('keep fields that are not ours', () => {
    const template = { metadata: { annotations: {} }, spec: { containers: containers() } }
    expect(podTemplateUp(template)).to.deep.equal(template)
    expect(template.metadata.annotations).to.not.have.property(templateChangesAnnotation)
  })
})
