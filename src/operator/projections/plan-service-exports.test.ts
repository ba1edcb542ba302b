import { expect } from 'chai'
import type { Condition, KubeObject } from '#apimachinery/meta/index.ts'
import { addressesAnnotation, planExport, planRefusal, type Seen, type Step } from './plan-service-exports.ts'

const now = '2026-01-01T00:00:00Z'
const apiVersion = 'multicluster.x-k8s.io/v1alpha1'
const meta = (name: string, more: object = {}) => ({
  name,
  namespace: 'shop',
  uid: `uid-${name}`,
  generation: 1,
  ...more,
})

const exported = (more: object = {}): KubeObject => ({
  ...{ apiVersion, kind: 'ServiceExport', metadata: meta('web'), ...more },
})
const service = (spec: object = {}): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: meta('web') },
  spec: {
    ...{ type: 'ClusterIP', clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], selector: { app: 'web' } },
    ports: [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP', nodePort: 30000 }],
    ...{
      sessionAffinity: 'None',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
    },
    ...spec,
  },
})
const slice = (member: string, ready: boolean): KubeObject => ({
  ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' },
  metadata: meta(`web-${member}`, { annotations: { 'kcp.dev/member': member } }),
  endpoints: [{ addresses: ['10.1.0.1'], conditions: { ready } }],
})
const nothing: Seen = { export: undefined, import: undefined, service: undefined, derived: undefined, slices: [] }

/** Plays the server: does the steps until there are none. */
function settle(from: Seen): { seen: Seen; done: string[] } {
  let seen = from
  const done: string[] = []
  for (let round = 0; round < 10; round++) {
    const steps = planExport('web', seen, now)
    if (steps.length === 0) return { seen, done }
    for (const step of steps) {
      done.push(`${step.do} ${step.part}`)
      seen = { ...seen, [step.part === 'service' ? 'derived' : step.part]: result(step) }
    }
  }
  throw new Error(`does not settle: ${done.join()}`)
}

function result(step: Step): KubeObject | undefined {
  if (step.do === 'delete') return undefined
  const { object } = step
  return { ...object, metadata: { ...object.metadata, uid: object.metadata.uid ?? `new-${step.part}` } }
}

function told(object: unknown): string[] {
  const { status } = object as { status?: { conditions?: Condition[] } }
  return (status?.conditions ?? []).map(({ type, status: is, reason }) => `${type} ${is} ${reason}`)
}

const asReported = (derived: KubeObject, reports: Record<string, string[]>): KubeObject => ({
  ...derived,
  metadata: {
    ...derived.metadata,
    annotations: Object.fromEntries(
      Object.entries(reports).map(([member, addresses]) => [`status.kcp.dev/${member}`, JSON.stringify({ addresses })]),
    ),
  },
})

describe('plan for a ServiceExport', () => {
  const settled = () => settle({ ...nothing, export: exported(), service: service() })

  it('makes a ServiceImport and a second Service, and says that the Service is exported', () => {
    const { seen, done } = settled()
    expect(done).to.deep.equal(['create import', 'updateStatus export', 'create service', 'updateStatus export'])
    expect(told(seen.export)).to.deep.equal(['Valid True Valid', 'Conflict False NoConflicts', 'Ready True Exported'])
    expect(seen.import?.['spec']).to.deep.equal({
      type: 'ClusterSetIP',
      ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
      ...{ sessionAffinity: 'None', internalTrafficPolicy: 'Cluster', ipFamilies: ['IPv4'] },
    })
    expect(seen.derived?.metadata.name).to.equal('clusterset--web')
    expect(seen.derived?.metadata.labels).to.deep.equal({ 'multicluster.kubernetes.io/service-name': 'web' })
    expect(seen.derived?.['spec']).to.deep.include({
      ...{ type: 'ClusterIP', selector: { app: 'web' } },
      ports: [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }],
    })
    expect(seen.derived?.['spec']).not.to.have.property('clusterIP')
  })

  it('writes the version that it asks for, though lists show the one that is stored', () => {
    const stored = exported({ apiVersion: 'multicluster.x-k8s.io/v1beta1' })
    const [told] = planExport('web', { ...nothing, export: stored }, now)
    expect(told).to.have.nested.property('object.apiVersion', apiVersion)
  })

  it('shows the addresses that members gave the name, and the members with ready endpoints', () => {
    const { seen } = settled()
    const derived = asReported(seen.derived as KubeObject, { west: ['10.2.0.9'], east: ['10.1.0.9'] })
    const after = settle({
      ...seen,
      derived,
      slices: [slice('west', true), slice('east', true), slice('south', false)],
    })
    expect(after.seen.import?.['spec']).to.deep.include({ ips: ['10.1.0.9'], ipFamilies: ['IPv4'] })
    expect(after.seen.import?.metadata.annotations?.[addressesAnnotation]).to.equal(
      '{"east":["10.1.0.9"],"west":["10.2.0.9"]}',
    )
    expect(after.seen.import?.['status']).to.deep.equal({ clusters: [{ cluster: 'east' }, { cluster: 'west' }] })
    const gone = settle({ ...after.seen, slices: [slice('west', true), slice('east', false)] })
    expect(gone.seen.import?.['status']).to.deep.equal({ clusters: [{ cluster: 'west' }] })
  })

  it('shows exported labels and annotations alone', () => {
    const spec = { exportedLabels: { tier: 'one' }, exportedAnnotations: { note: 'two' } }
    const first = settle({ ...nothing, export: exported({ spec }), service: service() })
    expect(first.seen.import?.metadata.labels).to.deep.equal({ tier: 'one' })
    expect(first.seen.import?.metadata.annotations).to.deep.equal({ note: 'two' })
    const second = settle({ ...first.seen, export: { ...(first.seen.export as KubeObject), spec: {} } })
    expect(second.seen.import?.metadata.labels).to.deep.equal({})
    expect(second.done).to.deep.equal(['update import'])
  })

  it('makes headless what is headless, and again when that changes', () => {
    const first = settle({ ...nothing, export: exported(), service: service({ clusterIP: 'None' }) })
    expect(first.seen.import?.['spec']).to.deep.include({ type: 'Headless' })
    expect(first.seen.derived?.['spec']).to.deep.include({ clusterIP: 'None' })
    const derived = asReported(first.seen.derived as KubeObject, { east: ['10.1.0.9'] })
    expect(settle({ ...first.seen, derived }).done, 'no address is shown').to.deep.equal([])
    const second = settle({ ...first.seen, service: service() })
    expect(second.done).to.include.members(['delete service', 'create service', 'update import'])
    expect(second.seen.import?.['spec']).to.deep.include({ type: 'ClusterSetIP' })
  })

  it('follows the ports of the Service and keeps the cluster IP', () => {
    const { seen } = settled()
    const derived = seen.derived as KubeObject
    const own = { clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.2'] }
    const withAddress = { ...derived, spec: { ...(derived['spec'] as object), ...own } }
    const ports = [{ name: 'admin', port: 90, targetPort: 90, protocol: 'TCP' }]
    const after = settle({ ...seen, derived: withAddress, service: service({ ports }) })
    expect(after.done).to.deep.equal(['update import', 'update service'])
    expect(after.seen.derived?.['spec']).to.deep.include({ ...own, ports })
  })

  for (const { title, change } of [
    { title: 'the export is deleted', change: { export: undefined } },
    {
      title: 'the export is being deleted',
      change: { export: exported({ metadata: meta('web', { deletionTimestamp: now }) }) },
    },
    { title: 'the Service is deleted', change: { service: undefined } },
  ] satisfies { title: string; change: Partial<Seen> }[])
    it(`takes both away when ${title}`, () => {
      const { seen } = settle({ ...settled().seen, ...change })
      expect([seen.import, seen.derived]).to.deep.equal([undefined, undefined])
    })

  for (const { title, change, says } of [
    {
      title: 'there is no Service',
      change: { service: undefined },
      says: ['Valid False NoService', 'Conflict False NoConflicts', 'Ready False Pending'],
    },
    {
      title: 'the Service is an ExternalName',
      change: { service: service({ type: 'ExternalName' }) },
      says: ['Valid False InvalidServiceType', 'Conflict False NoConflicts', 'Ready False Pending'],
    },
    {
      title: 'somebody else has the name of the second Service',
      change: { derived: { apiVersion: 'v1', kind: 'Service', metadata: meta('clusterset--web') } },
      says: ['Valid True Valid', 'Conflict False NoConflicts', 'Ready False Failed'],
    },
  ] satisfies { title: string; change: Partial<Seen>; says: string[] }[])
    it(`exports nothing and says so if ${title}`, () => {
      const { seen, done } = settle({ ...nothing, export: exported(), service: service(), ...change })
      expect(told(seen.export)).to.deep.equal(says)
      expect(done).to.deep.equal(['updateStatus export'])
    })

  it('refuses a name that is too long for the second Service', () => {
    const name = 'w'.repeat(52)
    const steps = planExport(name, { ...nothing, export: exported(), service: service() }, now)
    expect(steps.map((step) => step.do)).to.deep.equal(['updateStatus'])
    expect(told(steps[0]?.do === 'updateStatus' ? steps[0].object : {})).to.include('Ready False Failed')
  })

  it('leaves alone what others made by these names without an export', () => {
    const foreign = { apiVersion, kind: 'ServiceImport', metadata: meta('web') }
    expect(planExport('web', { ...nothing, import: foreign, service: service() }, now)).to.deep.equal([])
  })

  it('keeps saying what the server refused until the export is complete', () => {
    const first = { ...nothing, export: exported(), service: service() }
    const [step] = planRefusal(exported(), 'exceeded quota', now)
    const refused = step?.do === 'updateStatus' ? step.object : undefined
    const again = planExport('web', { ...first, export: refused }, now)
    const status = again.find((one) => one.do === 'updateStatus')
    expect(told(status && 'object' in status ? status.object : {})).to.include('Ready False Failed')
    expect(told(settle({ ...first, export: refused }).seen.export)).to.include('Ready True Exported')
  })
})
