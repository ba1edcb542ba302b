// A tenant that floods a server in a small container: it is refused, the process lives, and a neighbour is answered.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { memoryGroup } from '#test/support/memory-group.ts'
import { skipUnless } from '#test/support/needs.ts'

const containers = [512, 1024]
const floodMs = 60_000
const connections = 64
const configMaps = '/api/v1/namespaces/default/configmaps'
const things = '/apis/example.com/v1/namespaces/default/things'
/** Text that cannot be packed. */
const text = randomBytes(2 * 1024 * 1024)
  .toString('base64')
  .slice(0, 2.7 * 1024 * 1024)
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}
const thing = (name: string, characters: number): string =>
  `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"${name}"},"a":"${text.slice(0, characters)}"}`

/** What one client sends next. */
type Request = readonly [method: string, path: string, body?: string]
const floods: Record<string, (i: number) => Request> = {
  'large bodies': (i) => ['POST', things, thing(`large-${i}`, text.length)],
  'large bodies that are not stored': (i) => ['POST', `${things}?dryRun=All`, thing(`dry-${i}`, text.length)],
  'bodies that are just not large, and reads': (i) =>
    i % 4 === 0
      ? ['GET', '/api/v1/namespaces/default']
      : ['POST', configMaps, `{"metadata":{"name":"m-${i}"},"data":{"a":"${text.slice(i % 1000, 250_000)}"}}`],
  'large bodies, and lists of them': (i) =>
    i % 4 === 0 ? ['GET', things] : ['POST', things, thing(`listed-${i}`, text.length)],
}

for (const mebibytes of containers)
  for (const [title, next] of Object.entries(floods))
    describe(`kcp start in a container of ${mebibytes} MiB, and a tenant that sends ${title}`, function () {
      this.timeout(600_000)
      const stack = new AsyncDisposableStack()
      let kcp: KcpInstance
      let hostile: Tenant
      let quiet: Tenant

      before(async function () {
        const group = memoryGroup(mebibytes)
        if (typeof group === 'string') {
          skipUnless(this, group)
          return
        }
        stack.use(group)
        kcp = stack.use(await startInstance([], { env: group.env }))
        hostile = await kcp.tenant('hostile')
        quiet = await kcp.tenant('quiet')
      })
      after(() => stack.disposeAsync())

      const statuses = new Map<number, number>()
      async function flood(signal: AbortSignal): Promise<void> {
        let sent = 0
        const client = async (): Promise<void> => {
          while (!signal.aborted && kcp.process.running) {
            const [method, path, body] = next(sent++)
            const status = await hostile.http
              .request(method, hostile.base + path, { signal, ...(body && { body }) })
              .then(
                (response) => response.status,
                () => 0,
              )
            statuses.set(status, (statuses.get(status) ?? 0) + 1)
            if (status === 429 || status === 0) await delay(100)
          }
        }
        await Promise.all(Array.from({ length: connections }, client))
      }

      it('lives, and answers the neighbour', async () => {
        const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
        await hostile.http.request('POST', hostile.base + crds, { body: definition })
        const life = new AbortController()
        const flooding = flood(life.signal)
        const responses: number[] = []
        for (const end = performance.now() + floodMs; performance.now() < end && kcp.process.running;) {
          const name = `q-${responses.length}`
          const body = { metadata: { name }, data: { a: 'b' } }
          responses.push((await quiet.http.request('POST', quiet.base + configMaps, { body })).status)
          responses.push((await quiet.http.request('GET', `${quiet.base}${configMaps}/${name}`)).status)
          await delay(50)
        }
        life.abort()
        await flooding
        const told = `the tenant was answered ${JSON.stringify([...statuses])}`
        expect(kcp.process.running, `the process lives; ${told}`).to.equal(true)
        expect(new Set(responses), told).to.deep.equal(new Set([201, 200]))
        expect(statuses.get(429), told).to.be.greaterThan(0)
      })
    })
