// The console of a host with two replicas of `kcp apiserver`: one session for all, and users of the host.
import { expect } from 'chai'
import { setTimeout as sleep } from 'node:timers/promises'
import { kubectl, runKcp, waitFor } from '#test/support/index.ts'
import { openBrowser, type Browser } from './console-browser.ts'
import { startReplicas, type ReplicaSet, type RunningReplica } from './replicas.ts'

describe('the console of several replicas', function () {
  this.timeout(300_000)
  let set: ReplicaSet
  let browsers: [Browser, Browser]

  before(async () => {
    set = await startReplicas(2)
    for (const name of ['acme', 'globex', 'initech']) await set.create(name)
    browsers = [browserAt(set.replicas[0]), browserAt(set.replicas[1])]
  })
  after(async () => {
    for (const browser of browsers) await browser[Symbol.asyncDispose]()
    await set[Symbol.asyncDispose]()
  })

  const browserAt = (replica: RunningReplica | undefined): Browser => {
    if (replica === undefined) throw new Error('a replica is missing')
    return openBrowser(replica.port, { host: replica.address })
  }
  const ticket = async (...name: string[]): Promise<string> => {
    const { stdout } = await runKcp(['console', ...name, '--host-kubeconfig', set.host.kubeconfig])
    return /#ticket=(\S+)/.exec(stdout)?.[1] ?? ''
  }
  const host = (...args: string[]) => kubectl(set.host.kubeconfig, args)
  const statusOf = async (browser: Browser, path: string): Promise<number> => (await browser.fetch('GET', path)).status

  it('takes a link once, whichever replica gets it', async () => {
    const [first, second] = browsers
    const link = await ticket()
    const answers = await Promise.all(
      [first, second, first, second].map((browser) =>
        browser.fetch('POST', '/console/api/session', { body: { ticket: link } }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([201, 401, 401, 401])
  })

  it('has one session for all replicas, which pass its requests on to the owner of a logical cluster', async () => {
    const [first, second] = browsers
    await first.signIn({ ticket: await ticket() })
    second.cookie = first.cookie
    for (const browser of browsers)
      for (const name of ['acme', 'globex', 'initech']) {
        const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'by-console-' } }
        const path = `/console/k8s/clusters/${name}/api/v1/namespaces/default/configmaps`
        const made = await browser.fetch('POST', path, { body: object })
        expect(made.status, made.text).to.equal(201)
        expect(made.headers['content-security-policy']).to.include('sandbox')
      }
    const all = await second.fetch('GET', '/console/k8s/clusters/*/api/v1/configmaps?storedOnly=true')
    const { items } = all.json() as { items: { metadata: { name: string } }[] }
    expect(items.filter(({ metadata }) => metadata.name.startsWith('by-console-'))).to.have.length(6)
    const { items: clusters } = (await second.fetch('GET', '/console/api/clusters')).json() as { items: object[] }
    expect(clusters).to.have.length(3)
  })

  it('does not believe headers of replicas that a browser sends', async () => {
    const [first] = browsers
    const answer = await first.fetch('GET', '/console/k8s/clusters/acme/api', {
      headers: ['X-Kcp-Hop-Address', '1.2.3.4'],
    })
    expect(answer.status).to.equal(400)
  })

  it('ends a session in every replica', async () => {
    const [first, second] = browsers
    await first.signIn({ ticket: await ticket('acme') })
    second.cookie = first.cookie
    const path = '/console/k8s/clusters/acme/api/v1/namespaces'
    expect([await statusOf(first, path), await statusOf(second, path)]).to.deep.equal([200, 200])
    const watch = second.fetch('GET', `${path}?watch=1`)
    // It has begun by then; what begins later is refused.
    await sleep(1000)
    expect((await first.fetch('DELETE', '/console/api/session')).status).to.equal(200)
    expect(await statusOf(first, path)).to.equal(401)
    await waitFor(async () => (await statusOf(second, path)) === 401, {
      what: 'the end in the other',
      deadlineMs: 5000,
    })
    expect((await watch).status).to.equal(200)
  })

  it('shows the admin of the installation the LogicalClusters and MemberClusters of the host, and nothing else of it', async () => {
    const [first, second] = browsers
    await first.signIn({ ticket: await ticket() })
    const home = (await first.fetch('GET', '/console/api/session')).json()['home']
    expect(home).to.equal('k8s/host')
    const view = '/console/k8s/host/apis/kcp.dev/v1alpha1'
    const { items } = (await first.fetch('GET', `${view}/logicalclusters`)).json() as { items: object[] }
    expect(items).to.have.length(3)
    expect((await first.fetch('GET', `${view}/logicalclusters/acme`)).json()['kind']).to.equal('LogicalCluster')
    const members = await first.fetch('GET', `${view}/memberclusters`)
    expect([members.status, members.headers['content-security-policy']?.includes('sandbox')]).to.deep.equal([200, true])
    for (const path of [
      '/console/k8s/host/api/v1/secrets',
      '/console/k8s/host/api/v1/namespaces/kcp-system/secrets/kcp-keys',
      `${view}/../../../api/v1/namespaces/kcp-system/secrets/kcp-keys`,
      `${view}/logicalclusters/..%2f..%2f..%2f..%2fapi%2fv1%2fsecrets`,
      `${view}/logicalclusters/acme/../../../../../api/v1/secrets`,
      `${view}/logicalclusters/acme/status`,
      '/console/k8s/host/apis/storage.kcp.dev/v1alpha1/records',
      '/console/k8s/host//apis/kcp.dev/v1alpha1/logicalclusters',
    ])
      expect((await first.fetch('GET', path)).status, path).to.equal(404)
    for (const method of ['DELETE', 'PATCH', 'PUT'])
      expect((await first.fetch(method, `${view}/logicalclusters/acme`, { body: {} })).status, method).to.equal(405)
    await second.signIn({ ticket: await ticket('acme') })
    expect((await second.fetch('GET', `${view}/logicalclusters`)).status).to.equal(403)
  })

  it('shows a user of the host what it owns, and nothing else', async () => {
    const owner = { kind: 'ServiceAccount', name: 'alice', namespace: 'default' }
    await host('create', 'serviceaccount', 'alice')
    await host(
      'create',
      'clusterrole',
      'reach',
      '--verb=get,create',
      '--resource=logicalclusters.virtual.kcp.dev/proxy',
      '--resource-name=acme',
      '--resource-name=globex',
    )
    await host('create', 'clusterrolebinding', 'reach', '--clusterrole=reach', '--serviceaccount=default:alice')
    // initech is hers by spec.owners, but the host does not let her reach it.
    for (const name of ['acme', 'initech'])
      await host(
        'patch',
        `logicalclusters.kcp.dev/${name}`,
        '--type=merge',
        '-p',
        JSON.stringify({ spec: { owners: [owner] } }),
      )
    const token = (await host('create', 'token', 'alice')).stdout.trim()
    const [browser] = browsers
    browser.cookie = ''
    const begun = await browser.signIn({ token })
    expect([begun.status, begun.json()['user'], begun.json()['realm']]).to.deep.equal([
      201,
      'host:system:serviceaccount:default:alice',
      'host',
    ])
    const names = async (): Promise<string[]> => {
      const { items } = (await browser.fetch('GET', '/console/api/clusters')).json() as { items: { name: string }[] }
      return items.map(({ name }) => name)
    }
    await waitFor(async () => (await names()).length > 0, { what: 'the new owner to be known', deadlineMs: 10_000 })
    expect(await names()).to.deep.equal(['acme'])
    const secrets = (name: string): string => `/console/k8s/clusters/${name}/api/v1/secrets`
    // globex: the host lets her, the logical cluster does not. initech: the other way round.
    expect(await statusOf(browser, secrets('acme'))).to.equal(200)
    expect(await statusOf(browser, secrets('globex'))).to.equal(403)
    expect(await statusOf(browser, secrets('initech'))).to.equal(403)
    expect(
      (await browser.fetch('DELETE', '/console/k8s/clusters/acme/api/v1/namespaces/default/configmaps/x')).status,
    ).to.equal(403)
    for (const query of ['', '?storedOnly=true', '?limit=2']) {
      const all = await browser.fetch('GET', `/console/k8s/clusters/*/api/v1/configmaps${query}`)
      expect(all.status, all.text).to.equal(200)
      const found = new Set(all.text.match(/"kcp.dev\/logical-cluster":"[a-z]+"/g))
      expect([...found]).to.deep.equal(['"kcp.dev/logical-cluster":"acme"'])
    }
    expect((await browser.fetch('POST', '/console/k8s/clusters/*/api/v1/namespaces', { body: {} })).status).to.equal(
      403,
    )
    await host('delete', 'serviceaccount', 'alice')
    await waitFor(async () => (await statusOf(browser, secrets('acme'))) === 401, {
      what: 'the end of the token',
      deadlineMs: 30_000,
    })
  })
})
