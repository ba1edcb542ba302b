// An API that several members export: one definition for logical clusters, with what all members have.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { startSimulatedMember } from '#simulation/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { kubectl, runKcp, waitFor } from '#test/support/index.ts'
import { relatedForgeries } from './syncer/forgeries.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }
const crd = 'widgets.example.com'
type Kubectl = Pick<Tenant, 'kubectl'>['kubectl']

const size = { type: 'integer' }
const text = { type: 'string' }
const definition = (properties: object, more: object = {}) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: crd },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
    ...more,
  },
})
const widget = (name: string, spec: object, annotations = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name, namespace: 'default', annotations },
  spec,
})
const exported = (more = {}) => ({ spec: { exportedAPIs: [{ group: 'example.com', resource: 'widgets', ...more }] } })

describe('an API that several members export', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const members: Record<string, Kubectl> = {}
  const processes: Record<string, AsyncDisposable> = {}
  let kcp: KcpInstance
  let acme: Tenant
  let space = ''

  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, ...within })
  const read = async (from: Kubectl, ...what: string[]): Promise<KubeObject | undefined> => {
    const { stdout } = await from(['get', ...what, '--ignore-not-found', '-o', 'json'], { expectCode: 'any' })
    return stdout.trim() === '' ? undefined : (JSON.parse(stdout) as KubeObject)
  }
  const apply = (to: Kubectl, object: object) => to(['apply', '-f', '-'], { input: object })
  /** The fields of spec, and the members, of the definition in the logical cluster. */
  const fields = async (): Promise<string> => {
    const found = await read(acme.kubectl, 'crd', crd)
    const { versions = [] } = (found?.['spec'] ?? {}) as { versions?: { schema: { openAPIV3Schema: object } }[] }
    const schema = versions[0]?.schema.openAPIV3Schema as { properties: { spec: { properties?: object } } } | undefined
    const names = Object.keys(schema?.properties.spec.properties ?? {}).sort()
    return `${names.join()} from ${found?.metadata.annotations?.['kcp.dev/exported-by'] ?? 'nobody'}`
  }
  const untilFields = (wanted: string): Promise<true> =>
    until(wanted, async () => (await fields()) === wanted).then(() => true as const)
  const api = async (member: string): Promise<Record<string, unknown>> => {
    const found = (await read(kcp.admin.kubectl, 'mc', member))?.['status'] as {
      exportedAPIs?: Record<string, unknown>[]
    }
    return found.exportedAPIs?.[0] ?? {}
  }
  const condition = async (member: string, type: string): Promise<string> => {
    const { conditions = [] } = (await api(member)) as { conditions?: Record<string, string>[] }
    const found = conditions.find((one) => one['type'] === type)
    return found === undefined ? '' : `${found['status']} ${found['reason']}: ${found['message']}`
  }
  const copyIn = (member: string, name: string) => read(members[member]!, 'widgets', name, '-n', space)
  const patch = (member: string, change: object) =>
    kcp.admin.kubectl(['patch', `mc/${member}`, '--type=merge', '-p', JSON.stringify(change)])

  const setStatus = (member: string, name: string, observedGeneration: number | undefined) => {
    const status = { conditions: [{ type: 'Ready', status: 'True', observedGeneration }], in: member }
    const change = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]
    return members[member]!(['patch', `widget/${name}`, '-n', space, ...change])
  }

  const join_ = async (name: string, object: object, subnet: number): Promise<void> => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-simulated-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const life = new AbortController()
    stack.defer(() => life.abort())
    const member = await startSimulatedMember({
      ...{ name, dir, nodes: { count: 1, subnet }, log: silentLogger, signal: life.signal },
    })
    processes[name] = stack.use(member)
    const file = join(dir, 'kubeconfig')
    writeFileSync(file, member.kubeconfig)
    members[name] = (args, options) => kubectl(file, args, options)
    await apply(members[name], object)
    await rejoin(name, file)
  }
  const files: Record<string, string> = {}
  const rejoin = async (name: string, file = files[name] ?? ''): Promise<void> => {
    files[name] = file
    await runKcp(['member', 'join', name, '--kubeconfig', file, '--root-dir', kcp.rootDir, '--export', crd])
  }

  before(async function () {
    this.timeout(300_000)
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    const { stdout } = await kcp.admin.kubectl(['get', 'lc', 'acme', '-o', 'jsonpath={.status.id}'])
    space = `${stdout}-default`
    await join_('east', definition({ size, colour: text }), 31)
    await untilFields('colour,size from east')
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('loses a field with an older member, says which one lacks it, and has it again when that member is removed', async () => {
    await join_('west', definition({ size }), 32)
    await untilFields('size from east,west')
    const dropped = [{ version: 'v1', path: '.spec.colour', members: ['west'] }]
    for (const name of ['east', 'west'])
      await until('the status', async () => isDeepStrictEqual((await api(name))['droppedFields'], dropped))
    expect(await condition('west', 'Available')).to.equal('True Offered: 1 logical clusters have it')
    const { stdout } = await acme.kubectl(['get', 'events', '-o', 'jsonpath={.items[*].message}'])
    expect(stdout).to.include('v1 .spec.colour (west)')
    const { stderr } = await acme.kubectl(['apply', '-f', '-'], {
      input: widget('red', { size: 1, colour: 'red' }),
      expectCode: 1,
    })
    expect(stderr).to.include('unknown field "spec.colour"')
    await kcp.admin.kubectl(['delete', 'mc', 'west', '--timeout=60s'])
    await untilFields('colour,size from east')
  })

  it('holds a change that would cut stored objects, and uses the member as soon as they do not need the field', async () => {
    await apply(acme.kubectl, widget('blue', { size: 2, colour: 'blue' }))
    await until('the copy', () => copyIn('east', 'blue'))
    await rejoin('west')
    await until('the reason', async () => (await condition('west', 'Compatible')).startsWith('False'))
    expect(await condition('west', 'Compatible')).to.equal(
      `False DefinitionsDiffer: in logical cluster "acme": v1 .spec.colour does not exist any more: the change of ${crd} is held, because 1 stored object would lose spec.colour`,
    )
    expect(await condition('west', 'Available')).to.match(/^False/)
    expect(await fields()).to.equal('colour,size from east')
    await apply(acme.kubectl, widget('second', { size: 1 }, { 'kcp.dev/clusters': 'west' }))
    await until('the reason', async () =>
      (await read(acme.kubectl, 'widget', 'second'))?.metadata.annotations?.['kcp.dev/held']?.includes(
        'does not serve',
      ),
    )
    await acme.kubectl(['patch', 'widget', 'blue', '--type=json', '-p', '[{"op":"remove","path":"/spec/colour"}]'])
    await untilFields('size from east,west')
    await until('the copy', () => copyIn('west', 'second'))
    expect(await copyIn('east', 'second')).to.equal(undefined)
  })

  it('moves an object as the export says, and has one status', async () => {
    for (const name of ['east', 'west']) await patch(name, exported({ move: 'MakeBeforeBreak' }))
    const made = await until('the copy', () => copyIn('west', 'second'))
    await setStatus('west', 'second', made.metadata.generation)
    await until('the status', async () =>
      JSON.stringify((await read(acme.kubectl, 'widget', 'second'))?.['status']).includes('west'),
    )
    await acme.kubectl(['annotate', 'widget', 'second', '--overwrite', 'kcp.dev/clusters=east'])
    await until('the new copy', () => copyIn('east', 'second'))
    expect(await copyIn('west', 'second'), 'the old copy stays until the new one is ready').to.not.equal(undefined)
    await setStatus('east', 'second', 1)
    await until('the end of the old copy', async () => (await copyIn('west', 'second')) === undefined)
    await until('the new status', async () =>
      JSON.stringify((await read(acme.kubectl, 'widget', 'second'))?.['status']).includes('"east"'),
    )
  })

  it('leaves a member that is drained, which is empty only then', async () => {
    await acme.kubectl(['annotate', 'widget', 'second', 'kcp.dev/clusters-'])
    await patch('east', { spec: { state: 'Draining' } })
    const made = await until('the copy', () => copyIn('west', 'second'))
    const drained = async (): Promise<string | undefined> => {
      const { conditions = [] } = ((await read(kcp.admin.kubectl, 'mc', 'east'))?.['status'] ?? {}) as {
        conditions?: Record<string, string>[]
      }
      return conditions.find(({ type }) => type === 'Drained')?.['status']
    }
    await until('the wait', async () => (await drained()) === 'False')
    await setStatus('west', 'second', made.metadata.generation)
    for (const name of ['second', 'blue'])
      await until('the end of the copy', async () => (await copyIn('east', name)) === undefined)
    await until('the end of the drain', async () => (await drained()) === 'True')
    await patch('east', { spec: { state: 'Active' } })
  })

  it('leaves out the youngest member where the rules of all cost more than logical clusters allow', async () => {
    const costly = (word: string) => {
      const found = definition({ size, tags: { type: 'array', maxItems: 1000, items: { ...text, maxLength: 1000 } } })
      const { properties } = found.spec.versions[0]!.schema.openAPIV3Schema
      const rules = Array.from({ length: 12 }, (_, i) => ({
        rule: `self.tags.all(x, self.tags.exists(y, y != '${word}${i}'))`,
      }))
      Object.assign(properties.spec, { 'x-kubernetes-validations': rules })
      return found
    }
    await apply(members['east']!, costly('a'))
    // The rules read the field, so it stays known, and is refused.
    await untilFields('size,tags from east,west')
    await apply(members['west']!, costly('b'))
    await until('the reason', async () => (await condition('west', 'Compatible')).includes('together with the others'))
    await untilFields('size,tags from east')
    await apply(members['east']!, definition({ size, colour: text }))
  })

  it('is not lost to logical clusters because of a member with another scope, or with a definition that they refuse', async () => {
    await patch('west', { spec: { exportedAPIs: null } })
    await untilFields('colour,size from east')
    await members['west']!(['delete', 'crd', crd, '--wait=true'])
    await apply(members['west']!, definition({ size }, { scope: 'Cluster' }))
    await patch('west', exported())
    await until('the reason', async () => (await condition('west', 'Compatible')).includes('spec.scope is'))
    expect(await fields()).to.equal('colour,size from east')
  })

  describe('with Secrets that the controller makes, and without namespaces', () => {
    const kind = (plural: string, name: string, scope: string) => ({
      ...definition({ secretName: text }),
      metadata: { name: `${plural}.example.com` },
      spec: {
        ...definition({ secretName: text }).spec,
        scope,
        names: { plural, singular: name.toLowerCase(), kind: name },
      },
    })
    const object = (kind: string, name: string, spec = {}) => ({
      ...{ apiVersion: 'example.com/v1', kind, metadata: { name } },
      spec,
    })
    const secret = (name: string, value: string, more = {}) => ({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: space }, stringData: { value } },
      ...more,
    })
    const status = (name: string, secretName: string) =>
      members['east']!([
        ...['patch', `database/${name}`, '-n', space, '--subresource=status', '--type=merge', '-p'],
        JSON.stringify({ status: { ref: { name: secretName } } }),
      ])
    const valueOf = async (name: string): Promise<string> => {
      const { data = {} } = ((await read(acme.kubectl, 'secret', name)) ?? {}) as { data?: Record<string, string> }
      return Buffer.from(data['value'] ?? '', 'base64').toString()
    }

    before(async function () {
      this.timeout(120_000)
      await apply(members['east']!, kind('databases', 'Database', 'Namespaced'))
      await apply(members['east']!, kind('zones', 'Zone', 'Cluster'))
      const names = ['databases.example.com', 'zones.example.com']
      const more = names.flatMap((name) => ['--export', name])
      await runKcp([
        'member',
        'join',
        'east',
        '--kubeconfig',
        files['east']!,
        '--root-dir',
        kcp.rootDir,
        '--export',
        crd,
        ...more,
      ])
      const related = [
        { resource: 'secrets', path: 'status.ref.name' },
        { resource: 'secrets', path: 'spec.secretName' },
      ]
      const exportedAPIs = [
        { group: 'example.com', resource: 'widgets' },
        { group: 'example.com', resource: 'databases', related },
        { group: 'example.com', resource: 'zones' },
      ]
      await patch('east', { spec: { exportedAPIs } })
      for (const name of names) await until(name, () => read(acme.kubectl, 'crd', name))
    })

    it('shows the Secret that the object names, follows it, and removes it with the object', async () => {
      await until(
        'the API',
        async () =>
          (await acme.kubectl(['apply', '-f', '-'], { input: object('Database', 'orders'), expectCode: 'any' }))
            .code === 0,
      )
      await until('the copy', () => read(members['east']!, 'database', 'orders', '-n', space))
      await apply(members['east']!, secret('orders-admin', 'first'))
      await status('orders', 'orders-admin')
      await until('the Secret', async () => (await valueOf('orders-admin')) === 'first')
      await apply(members['east']!, secret('orders-admin', 'second'))
      await until('the new value', async () => (await valueOf('orders-admin')) === 'second')
      await acme.kubectl(['delete', 'database', 'orders'])
      await until('its end', async () => (await read(acme.kubectl, 'secret', 'orders-admin')) === undefined)
    })

    it('lets a member write no other Secret, whatever it says', async () => {
      await acme.kubectl(['create', 'secret', 'generic', 'shop-key', '--from-literal=value=own'])
      await apply(acme.kubectl, object('Database', 'shop', { secretName: 'chosen' }))
      await until('the copy', () => read(members['east']!, 'database', 'shop', '-n', space))
      for (const forged of relatedForgeries('shop')) {
        for (const made of forged.secrets) await apply(members['east']!, secret(made.name, 'forged', made.more))
        await status('shop', forged.says)
      }
      await apply(members['east']!, secret('chosen', 'as asked'))
      await until('what the tenant has named', async () => (await valueOf('chosen')) === 'as asked')
      await status('shop', 'shop-key')
      await until('the refusal', async () =>
        (await acme.kubectl(['get', 'events', '-o', 'jsonpath={.items[*].message}'])).stdout.includes(
          'Secret "shop-key" exists',
        ),
      )
      expect(await valueOf('shop-key')).to.equal('own')
      const { stdout } = await acme.kubectl(['get', 'secrets', '-A', '-o', 'jsonpath={.items[*].metadata.name}'])
      expect(stdout.split(' ').sort()).to.deep.equal(['chosen', 'shop-key'])
    })

    it('copies an object without a namespace under a name with the id of its logical cluster', async () => {
      const bob = await kcp.tenant('bob')
      await until('the definition', () => read(bob.kubectl, 'crd', 'zones.example.com'))
      for (const { kubectl } of [acme, bob])
        await until(
          'the API',
          async () =>
            (await kubectl(['apply', '-f', '-'], { input: object('Zone', 'north'), expectCode: 'any' })).code === 0,
        )
      const names = async (): Promise<string[]> =>
        (await members['east']!(['get', 'zones', '-o', 'jsonpath={.items[*].metadata.name}'])).stdout
          .split(' ')
          .filter(Boolean)
      await until('both copies', async () => (await names()).length === 2)
      const own = `${space.slice(0, space.indexOf('-'))}-north`
      expect(await names()).to.include(own)
      await members['east']!([
        'patch',
        `zone/${own}`,
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"of":"acme"}}',
      ])
      await until(
        'the status',
        async () => JSON.stringify((await read(acme.kubectl, 'zone', 'north'))?.['status']) === '{"of":"acme"}',
      )
      expect((await read(bob.kubectl, 'zone', 'north'))?.['status']).to.equal(undefined)
      await acme.kubectl(['delete', 'zone', 'north'])
      await until('the end of the copy', async () => !(await names()).includes(own))
      expect(await names()).to.have.length(1)
    })
  })

  describe('and a member that is away', () => {
    it('does not become wider, also after a restart of kcp, until the member no longer exports it', async () => {
      await members['west']!(['delete', 'crd', crd, '--wait=true'])
      await apply(members['west']!, definition({ size }))
      await untilFields('size from east,west')
      await processes['west']![Symbol.asyncDispose]()
      await kcp.process.kill()
      await apply(members['east']!, definition({ size, colour: text, weight: size }))
      await kcp.process.start()
      // After this object is in the member, the operator has read the new definition.
      await apply(acme.kubectl, widget('later', { size: 1 }, { 'kcp.dev/clusters': 'east' }))
      await until('the copy', () => copyIn('east', 'later'))
      expect(await fields()).to.equal('size from east,west')
      await patch('west', { spec: { exportedAPIs: null } })
      await untilFields('colour,size,weight from east')
    })
  })
})
