// Tokens of pods in a member that is compromised: it issues what it likes and confirms everything. Such a token is
// accepted only for a ServiceAccount under which a workload placed on that member runs.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { createLogger } from '#telemetry/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { locatorAnnotation, memberClusters, memberIdOf, placedOnAnnotation, type CopyState } from '#crds/index.ts'
import { createMembers } from '#virtualapi/index.ts'
import { startCluster, type Cluster } from '#test/support/index.ts'
import { openRawClient, type RawClient } from './raw-client.ts'
import { startServedApi, untilTrue, type ServedApi, type ServedTenant } from './served-api.ts'

const apps = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const accounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const
const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

describe('tokens of pods in a compromised member', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let served: ServedApi
  let acme: ServedTenant
  let own: KubeClient
  let east: Cluster
  let memberId: string
  let client: RawClient
  const { signal } = new AbortController()

  before(async function () {
    this.timeout(300_000)
    east = stack.use(
      await startCluster({
        name: 'east',
        flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] },
      }),
    )
    const log = createLogger({ level: 'error' })
    served = stack.use(
      await startServedApi({
        members: ({ loopback }) => createMembers({ transport: loopback, basePath: '/clusters/root', log, signal }),
      }),
    )
    client = stack.use(openRawClient({ port: served.port }))
    acme = await served.tenant('acme')
    own = served.api.client('acme' as never)
    const kubeSystem = JSON.parse((await east.kubectl(['get', 'ns', 'kube-system', '-o', 'json'])).stdout) as KubeObject
    memberId = memberIdOf(kubeSystem.metadata.uid ?? '')
    await register(kubeSystem.metadata.uid ?? '')
    for (const [namespace, name] of [
      ['default', 'web'],
      ['default', 'other'],
      ['kube-system', 'admin'],
    ] as const) {
      await own.create(
        accounts,
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
        { signal },
      )
      await forgePod(namespace, name)
    }
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  async function register(uid: string): Promise<void> {
    const spec = { connection: { kubeconfigSecretRef: { namespace: 'default', name: 'east' } } }
    const member = { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'east' }, spec }
    await untilTrue(async () => {
      return (await served.root.create(memberClusters, member, { signal }).catch(() => undefined)) !== undefined
    }, 'MemberClusters are served in root')
    const kubeconfig = Buffer.from(readFileSync(east.kubeconfig)).toString('base64')
    const metadata = { name: 'east', namespace: 'default' }
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: { kubeconfig } }
    await served.root.create(secrets, secret, { signal })
    const status = { status: { id: uid } }
    await served.root.patch(memberClusters, { name: 'east' }, 'merge', status, { subresource: 'status', signal })
  }

  const below = (namespace: string): string => `${acme.id}-${namespace}`

  /** Forges, as a compromised member could, a namespace of ours with a ServiceAccount and a pod of this name. */
  async function forgePod(namespace: string, name: string): Promise<void> {
    const locator = { cluster: 'acme', clusterId: acme.id, namespace: '', name: namespace, uid: 'u' }
    const metadata = { name: below(namespace), annotations: { [locatorAnnotation]: JSON.stringify(locator) } }
    await east.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'Namespace', metadata } })
    const inside = { name, namespace: below(namespace) }
    await east.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: inside } })
    const spec = { serviceAccountName: name, containers: [{ name: 'c', image: 'i' }] }
    await east.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'Pod', metadata: inside, spec } })
  }

  async function tokenOf(namespace: string, name: string): Promise<string> {
    const inside = ['-n', below(namespace)]
    const uid = (await east.kubectl(['get', 'pod', name, ...inside, '-o', 'jsonpath={.metadata.uid}'])).stdout.trim()
    const bound = ['--bound-object-kind=Pod', `--bound-object-name=${name}`, `--bound-object-uid=${uid}`]
    const audience = `--audience=${acme.id}.${memberId}`
    return (await east.kubectl(['create', 'token', name, ...inside, audience, ...bound])).stdout.trim()
  }

  /** 403 means an authenticated user without rights, 401 a token that is not accepted. */
  async function answerTo(token: string): Promise<number> {
    const path = '/clusters/acme/api/v1/namespaces/kube-system/secrets'
    return (await client.request('GET', path, { headers: ['authorization', `Bearer ${token}`] })).status
  }

  async function place(name: string, serviceAccountName: string, states: Record<string, CopyState>): Promise<void> {
    const labels = { app: name }
    const template = { metadata: { labels }, spec: { serviceAccountName, containers: [{ name: 'c', image: 'i' }] } }
    const annotations = {
      [placedOnAnnotation]: JSON.stringify(
        Object.fromEntries(Object.entries(states).map(([member, state]) => [member, { state }])),
      ),
    }
    const object: KubeObject = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'default', annotations },
      spec: { replicas: 1, selector: { matchLabels: labels }, template },
    }
    if ((await own.tryGet(apps, { name, namespace: 'default' }, { signal })) === undefined)
      await own.create(apps, object, { signal })
    else await own.patch(apps, { name, namespace: 'default' }, 'merge', object, { signal })
  }

  it('are nobody in a namespace where nothing is placed, whatever the member confirms', async () => {
    expect(await answerTo(await tokenOf('kube-system', 'admin'))).to.equal(401)
  })

  it('are refused while the copy is only assumed or held, or on another member', async () => {
    const token = await tokenOf('default', 'web')
    for (const states of [{ east: 'Assumed' }, { east: 'Held' }, { west: 'Serving' }, {}] as const) {
      await place('web', 'web', states)
      expect(await answerTo(token), JSON.stringify(states)).to.equal(401)
    }
  })

  it('are accepted for the ServiceAccount of a workload that is placed there, and for no other', async () => {
    await place('web', 'web', { east: 'Serving' })
    expect(await answerTo(await tokenOf('default', 'web'))).to.equal(403)
    expect(await answerTo(await tokenOf('default', 'other'))).to.equal(401)
    expect(await answerTo(await tokenOf('kube-system', 'admin'))).to.equal(401)
  })

  it('are accepted for the pods of the former template while a rollout may last', async () => {
    const former = await tokenOf('default', 'web')
    await place('web', 'other', { east: 'Serving' })
    expect(await answerTo(await tokenOf('default', 'other'))).to.equal(403)
    expect(await answerTo(former)).to.equal(403)
    await place('web', 'web', { east: 'Serving' })
  })

  it('end at once when the scheduler takes the workload away', async () => {
    const token = await tokenOf('default', 'web')
    expect(await answerTo(token)).to.equal(403)
    await own.patch(
      apps,
      { name: 'web', namespace: 'default' },
      'merge',
      { metadata: { annotations: { [placedOnAnnotation]: '{}' } } },
      { signal },
    )
    expect(await answerTo(token)).to.equal(401)
    await place('web', 'web', { east: 'Serving' })
  })

  it('that the member did not sign are nobody, and cause no TokenReview in it', async () => {
    const token = await tokenOf('default', 'web')
    const before = await reviewsIn(east)
    const [header = '', claims = ''] = token.split('.')
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`
    expect(await answerTo(unsigned)).to.equal(401)
    expect(await answerTo(`${header}.${claims}.${'A'.repeat(342)}`)).to.equal(401)
    expect(await reviewsIn(east)).to.equal(before)
    expect(await answerTo(token)).to.equal(403)
    expect(await reviewsIn(east)).to.equal(before + 1)
  })

  it('end with their pod', async () => {
    const token = await tokenOf('default', 'web')
    await east.kubectl(['delete', 'pod', 'web', '-n', below('default'), '--force', '--grace-period=0'])
    expect(await answerTo(token)).to.equal(401)
  })
})

/** How many TokenReviews the member has answered, from its own metrics. */
async function reviewsIn(member: Cluster): Promise<number> {
  const text = (await member.kubectl(['get', '--raw', '/metrics'])).stdout
  return text
    .split('\n')
    .filter((line) => line.startsWith('apiserver_request_total{') && line.includes('resource="tokenreviews"'))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
