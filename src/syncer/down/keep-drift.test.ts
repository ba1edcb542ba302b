import { expect } from 'chai'
import fc from 'fast-check'
import { cloneJson, isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { statusError, type StatusCause } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { Drifts } from '#syncer/context/drifts.ts'
import { driftWithoutOwners, lackingPaths, removePath, writeBesideDrift } from './keep-drift.ts'

const signal = new AbortController().signal
const gvr = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const copy = (hash: string, replicas: number): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', annotations: { 'kcp.dev/applied': hash } },
  spec: {
    replicas,
    template: {
      spec: {
        containers: [
          { name: 'a', image: 'a:1' },
          { name: 'web', image: 'web:1' },
        ],
      },
    },
  },
})
const conflict = (...causes: readonly StatusCause[]): Error =>
  statusError(409, 'Conflict', 'Apply failed', { details: { causes: [...causes] } })
const cause = (field: string, manager = 'kubectl-edit'): StatusCause => ({
  reason: 'FieldManagerConflict',
  message: `conflict with "${manager}" using apps/v1`,
  field,
})

interface Sent {
  readonly body: KubeObject
  readonly force: boolean
  readonly dryRun: boolean
}

/** A member that gives these answers, in order, and then accepts everything. */
function answering(...answers: readonly Error[]): { client: Pick<KubeClient, 'patch'>; sent: Sent[] } {
  const sent: Sent[] = []
  const client: Pick<KubeClient, 'patch'> = {
    patch(_gvr, _ref, _type, body, { force = false, dryRun = false }) {
      const answer = answers[sent.length]
      sent.push({ body: cloneJson(body as KubeObject), force, dryRun })
      return answer === undefined ? Promise.resolve(body as never) : Promise.reject(answer)
    },
  }
  return { client, sent }
}
const write = (current: KubeObject, desired: KubeObject) => ({ gvr, ref: { name: 'web' }, current, desired, signal })

describe('writes beside what others have changed in a copy', () => {
  it('only ask, by a dry run, while the tenant has changed nothing', async () => {
    const { client, sent } = answering(conflict(cause('.spec.replicas')))
    const fields = await writeBesideDrift(client, write(copy('h1', 5), copy('h1', 2)))
    expect(fields).to.deep.equal([{ path: '.spec.replicas', manager: 'kubectl-edit' }])
    expect(sent.map(({ dryRun, force }) => [dryRun, force])).to.deep.equal([[true, false]])
  })

  it('leave the fields out that others own, and send the rest without force', async () => {
    const image = '.spec.template.spec.containers[name="web"].image'
    const { client, sent } = answering(conflict(cause('.spec.replicas'), cause(image, 'helm')))
    const fields = await writeBesideDrift(client, write(copy('h1', 5), copy('h2', 2)))
    expect(fields.map(({ path }) => path)).to.deep.equal(['.spec.replicas', image])
    expect(sent[1]?.force).to.equal(false)
    expect(sent[1]?.body['spec']).to.deep.equal({
      template: { spec: { containers: [{ name: 'a', image: 'a:1' }, { name: 'web' }] } },
    })
  })

  it("use force only when nothing but kcp's own marks is left in the conflict", async () => {
    const mark = '.metadata.annotations.kcp.dev/applied'
    const { client, sent } = answering(conflict(cause(mark), cause('.spec.replicas')), conflict(cause(mark)))
    const fields = await writeBesideDrift(client, write(copy('h0', 5), copy('h2', 2)))
    expect(fields).to.deep.equal([{ path: '.spec.replicas', manager: 'kubectl-edit' }])
    expect(sent.map(({ force }) => force)).to.deep.equal([false, false, true])
    expect(sent[2]?.body.metadata.annotations).to.have.property('kcp.dev/applied', 'h2')
    expect(sent[2]?.body['spec']).not.to.have.property('replicas')
  })

  it('give up at a member that names fields that are not there, very many, or new ones for ever', async () => {
    const many = Array.from({ length: 51 }, (_, index) => cause(`.spec.f${index}`))
    const hostile = [[conflict(cause('.spec.nothing'))], [conflict(...many)], [conflict()]]
    for (const answers of hostile) {
      const { client, sent } = answering(...answers)
      let failed = false
      await writeBesideDrift(client, write(copy('h1', 5), copy('h2', 2))).catch(() => (failed = true))
      expect(failed).to.equal(true)
      expect(sent).to.have.length(1)
    }
    const forever = Array.from({ length: 100 }, () => conflict(cause('.metadata.annotations.kcp.dev/applied')))
    const { client, sent } = answering(...forever)
    await writeBesideDrift(client, write(copy('h1', 5), copy('h2', 2))).catch(() => undefined)
    expect(sent).to.have.length(4)
  })

  it('tell what a member says in one bounded line without control characters', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ path: fc.string({ unit: 'binary' }), manager: fc.string() })), (fields) => {
        const text = Drifts.textOf(fields)
        expect(text.length).to.be.at.most(1024)
        expect(text).not.to.match(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/)
      }),
    )
  })

  it('remove nothing but what a path leads to, whatever the path', () => {
    const steps = fc.oneof(
      fc.constantFrom(
        '.spec',
        '.template',
        '.containers',
        '[name="web"]',
        '[name="a",port=1]',
        '[0]',
        '[="x"]',
        '.image',
      ),
      fc.string({ maxLength: 8 }),
    )
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 6 }), (parts) => {
        const [before, after] = [copy('h', 1), copy('h', 1)]
        const isRemoved = removePath(after, parts.join(''))
        expect(leaves(after).every((leaf) => leaves(before).includes(leaf))).to.equal(true)
        expect(JSON.stringify(after) === JSON.stringify(before)).to.equal(!isRemoved)
      }),
    )
  })

  it('find the fields that a copy lacks, but not what others have added', () => {
    const current = copy('h1', 2)
    const { spec } = current as unknown as { spec: { template: { spec: { containers: object[] } } } }
    spec.template.spec.containers.push({ name: 'sidecar', image: 'sidecar:1' })
    expect(lackingPaths(current, copy('h1', 2))).to.deep.equal([])
    spec.template.spec.containers.shift()
    const [lacking, ...others] = lackingPaths(current, copy('h1', 2))
    expect(lacking).to.include({ path: '.spec.template.spec.containers[name="a"]', isGone: true })
    expect(others).to.deep.equal([])
  })

  it('tell what is changed in a copy that is written by an update, until the tenant changes it', () => {
    const variables = (hash: string, ...values: readonly string[]): KubeObject => ({
      ...copy(hash, 2),
      spec: { replicas: 2, env: values.map((value) => ({ name: 'A', value })) },
    })
    const wanted = variables('h1', '1', '2')
    expect(driftWithoutOwners(variables('h1', '1', '2'), wanted)).to.deep.equal([])
    const changed = driftWithoutOwners(variables('h1', '1', '3'), wanted) ?? []
    expect(Drifts.textOf(changed)).to.equal('.spec.env[1].value is changed')
    expect(Drifts.textOf(driftWithoutOwners(variables('h1', '1'), wanted) ?? [])).to.equal('.spec.env is removed')
    expect(driftWithoutOwners(variables('h0', '1', '3'), wanted), 'a change of the tenant').to.equal(undefined)
    const unmarked = { ...wanted, metadata: { name: 'web', annotations: {} } }
    expect(driftWithoutOwners(unmarked, wanted), 'a mark that is gone').to.equal(undefined)
  })

  describe('that others have removed', () => {
    const service = (hash: string, rest: object): KubeObject => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', annotations: { 'kcp.dev/applied': hash } },
      spec: rest,
    })
    const [http, https] = [
      { port: 80, protocol: 'TCP' },
      { port: 443, protocol: 'TCP' },
    ]
    const whole = { selector: { app: 'web', tier: 'front' }, ports: [http, https], externalIPs: ['10.0.0.1'] }
    const less = { selector: { app: 'web' }, ports: [http] }

    /** Finds what is gone from the copy; then the tenant's object becomes `next`. Returns what is sent. */
    const afterwards = async (next: object): Promise<{ sent: unknown; told: string[] }> => {
      const found = await writeBesideDrift(answering().client, write(service('h1', less), service('h1', whole)))
      const removed = new Map(found.map(({ path, wanted = '' }) => [path, wanted]))
      expect([...removed.keys()]).to.have.members(['.spec.selector.tier', '.spec.ports', '.spec.externalIPs'])
      const { client, sent } = answering()
      const told = await writeBesideDrift(client, { ...write(service('h1', less), service('h2', next)), removed })
      return { sent: sent[0]?.body['spec'], told: told.map(({ path }) => path) }
    }

    it('stay removed while the tenant changes other fields', async () => {
      const { sent, told } = await afterwards({ ...whole, type: 'NodePort' })
      expect(sent).to.deep.equal({ ...less, type: 'NodePort' })
      expect(told).to.have.members(['.spec.selector.tier', '.spec.ports', '.spec.externalIPs'])
    })
    it('come back when the tenant changes them', async () => {
      const next = { selector: { app: 'web', tier: 'back' }, ports: [http, { ...https, nodePort: 30000 }] }
      const { sent, told } = await afterwards(next)
      expect(sent).to.deep.equal(next)
      expect(told).to.deep.equal([])
    })
    it('come with everything else when nothing is known of a removal', async () => {
      const { client, sent } = answering()
      await writeBesideDrift(client, write(service('h1', less), service('h2', whole)))
      expect(sent[0]?.body['spec']).to.deep.equal(whole)
    })
  })
})

function leaves(value: unknown, path = ''): string[] {
  if (!isJsonObject(value) && !Array.isArray(value)) return [`${path}=${JSON.stringify(value)}`]
  const entries = Array.isArray(value) ? value.map((item) => ['', item] as const) : Object.entries(value)
  return entries.flatMap(([key, item]) => leaves(item, `${path}/${key}`))
}
