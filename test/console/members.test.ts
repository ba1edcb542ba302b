// The pages of the console about members, in Chromium against two simulated members: what runs where, moves, drains,
// logs and terminals.
import { expect } from 'chai'
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import type { Tenant } from '#test/integration/kcp-instance.ts'
import { isLongRun, startKcp, waitFor } from '#test/support/index.ts'
import { AxeBuilder } from './axe.ts'
import { keepPicture, openConsole, type ConsoleUnderTest } from './open-console.ts'

const deployments = '/apis/apps/v1/namespaces/default/deployments'
const pods = '/api/v1/namespaces/default/pods'
const profileKind = { apiVersion: 'multicluster.x-k8s.io/v1alpha2', kind: 'ClusterProfile' }
const members = '/clusters/root/apis/kcp.dev/v1alpha1/memberclusters'

describe('the pages of the console about members', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let console_: ConsoleUnderTest
  let acme: Tenant

  const read = async <T>(path: string): Promise<T> =>
    (await console_.kcp.admin.http.request('GET', path)).json() as unknown as T
  const isReady = async (member: string): Promise<boolean> => {
    const { status } = await read<{ status?: { conditions?: { type: string; status: string }[] } }>(
      `${members}/${member}`,
    )
    return status?.conditions?.some((one) => one.type === 'Schedulable' && one.status === 'True') ?? false
  }
  const podNames = async (): Promise<string[]> => {
    const { items } = await read<{ items: { metadata: { name: string }; status?: { phase?: string } }[] }>(
      `${acme.base}${pods}`,
    )
    return items.filter(({ status }) => status?.phase === 'Running').map(({ metadata }) => metadata.name)
  }

  before(async () => {
    console_ = stack.use(await openConsole())
    const { kcp } = console_
    for (const member of ['east', 'west']) {
      const args = ['member', 'simulate', member, '--root-dir', kcp.rootDir]
      stack.use(await startKcp(args, { name: `member-${member}`, ready: () => isReady(member) }))
    }
    acme = await kcp.tenant('acme')
    const metadata = { name: 'quick' }
    const placement = {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'Placement',
      metadata,
      spec: { move: { drainSeconds: 5 } },
    }
    const placed = await acme.http.request('POST', `${acme.base}/apis/kcp.dev/v1alpha1/placements`, { body: placement })
    expect(placed.status, placed.text).to.equal(201)
    const labels = { app: 'web' }
    const containers = [
      {
        name: 'web',
        image: 'nginx:1.27',
        ports: [{ containerPort: 80 }],
        resources: { requests: { cpu: '1', memory: '1Gi' } },
      },
      { name: 'sidecar', image: 'sidecar:1' },
    ]
    const answer = await acme.http.request('POST', `${acme.base}${deployments}`, {
      body: {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
        metadata: { name: 'web', annotations: { 'kcp.dev/clusters': 'east' } },
        spec: {
          replicas: 2,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers } },
        },
      },
    })
    expect(answer.status, answer.text).to.equal(201)
    await waitFor(async () => (await podNames()).length === 2, { what: 'two pods to run', deadlineMs: 60_000 })
  })
  after(() => stack.disposeAsync())
  afterEach(() => {
    expect(console_.faults.splice(0)).to.deep.equal([])
  })

  it('show each adoption with what it waits for, and its conditions', async () => {
    const { page, go } = console_
    const adoptions = '/clusters/root/apis/kcp.dev/v1alpha1/adoptions'
    const spec = { member: 'east', namespace: 'kube-system', logicalCluster: 'acme' }
    const adoption = { apiVersion: 'kcp.dev/v1alpha1', kind: 'Adoption', metadata: { name: 'east.kube-system' }, spec }
    await go('#/adoptions')
    await page.getByText('No namespace was adopted.').waitFor()
    const made = await console_.kcp.admin.http.request('POST', adoptions, { body: adoption })
    expect(made.status, made.text).to.equal(201)
    await page
      .getByRole('row', { name: /east\.kube-system.*acme.*Refused.*belongs to the member cluster itself/ })
      .waitFor()
    await page.getByRole('link', { name: 'east.kube-system' }).click()
    await page
      .locator('.notice')
      .getByText(/belongs to the member cluster itself/)
      .waitFor()
    await page.getByText('What becomes of 0 objects').waitFor()
  })

  it('show each move of a volume with its facts, and agree to it in the name of the tenant', async () => {
    const { page, go, kcp } = console_
    const send = async (method: 'POST' | 'PATCH', path: string, body: object): Promise<void> => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const headers = ['content-type', type]
      const answer = await kcp.admin.http.request(method, path, { body, headers })
      expect(answer.status, answer.text).to.be.lessThan(300)
    }
    const claimPath = `${acme.base}/api/v1/namespaces/default/persistentvolumeclaims`
    const base = '/clusters/root/apis/kcp.dev/v1alpha1'
    await go('#/volumes')
    await page.getByText('No volume moves, and no old volume is kept.').waitFor()
    // A copy of the volume is wanted in west, so that its move stays while east does not have the volume.
    const volumes = { default: 'Replicate', standbys: ['west'], requireConsent: true }
    await send('POST', `${base}/placements`, {
      ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'volumes' } },
      spec: { volumes },
    })
    await send('POST', claimPath, {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
      metadata: { name: 'data', annotations: { 'kcp.dev/volume-in': 'east' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    await page.getByRole('row', { name: /acme \/ default \/ data Replicate east → west Preparing/ }).waitFor()
    const found = await read<{ items: { metadata: { name: string } }[] }>(`${base}/volumemoves`)
    const status = {
      ...{
        bytes: 4 * 2 ** 30,
        doneBytes: 2 ** 30,
        rate: 64 * 2 ** 20,
        entries: 12,
        rounds: 2,
        expectedDowntimeSeconds: 42,
      },
      connection: { way: 'Relayed', message: 'not direct: the source is not reached' },
      notKept: ['odd/device: DeviceNode'],
      summary: 'round 3: 25 %',
    }
    await send('PATCH', `${base}/volumemoves/${found.items[0]?.metadata.name ?? ''}/status`, { status })
    await page.getByRole('link', { name: 'acme / default / data' }).click()
    await page.getByRole('meter', { name: 'this round: 1 GiB of 4 GiB' }).waitFor()
    for (const fact of [
      '4 GiB in 12 entries',
      '64 MiB/s',
      '48s',
      'about 42 s',
      'odd/device: DeviceNode',
      'Relayed: not direct: the source is not reached',
    ])
      await page.getByText(fact, { exact: true }).waitFor()
    // Simulated members copy nothing, so the obstacle takes the place of the progress at some time.
    await page
      .locator('.notice')
      .getByText(/round 3: 25 %|[A-Z]\w+: /)
      .first()
      .waitFor()
    await page.getByText('kcp move namespace/default -c acme --to east', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Agree to the move' }).click()
    await page
      .getByText(/The application is stopped for about 42 s, then it goes on in member cluster "west"/)
      .waitFor()
    await page.getByRole('button', { name: 'Agree', exact: true }).click()
    await page.getByText('Agreed. The application stops').waitFor()
    const claim = await read<{ metadata: { annotations: Record<string, string> } }>(`${claimPath}/data`)
    expect(claim.metadata.annotations['kcp.dev/volume-consent']).to.equal('west')
    expect(await AxeBuilder.serious(page)).to.deep.equal([])
    for (const path of [`${claimPath}/data`, `${base}/placements/volumes`])
      expect((await kcp.admin.http.request('DELETE', path)).status).to.be.lessThan(300)
    await go('#/volumes')
    await page.getByText('No volume moves, and no old volume is kept.').waitFor({ timeout: 60_000 })
  })

  it('show the capacity of each member and what runs there', async () => {
    const { page, go } = console_
    await go('#/members')
    await page.getByRole('meter', { name: /^cpu: [1-9]/ }).waitFor({ timeout: 60_000 })
    await keepPicture(console_, 'members')
    await page.getByRole('link', { name: 'east', exact: true }).click()
    await page.getByText('What runs there: 1 workload').waitFor()
    await page.getByRole('link', { name: /deployment web/ }).waitFor()
  })

  it('cordon a member, and let it take workloads again', async () => {
    const { page, go } = console_
    const stateOf = async (): Promise<string | undefined> =>
      (await read<{ spec?: { state?: string } }>(`${members}/west`)).spec?.state
    await go('#/members/west')
    await page.getByRole('button', { name: 'Cordon' }).click()
    await page.getByRole('button', { name: 'Take workloads again' }).waitFor()
    expect(await stateOf()).to.equal('Cordoned')
    await page.getByRole('button', { name: 'Take workloads again' }).click()
    await page.getByRole('button', { name: 'Cordon' }).waitFor()
    expect(await stateOf()).to.equal('Active')
  })

  it('let the agent of a member in pull mode in, with the key that was shown', async () => {
    const { page, go, kcp } = console_
    const [token, key] = ['0'.repeat(64), `SHA256:${'A'.repeat(43)}`]
    const expires = new Date(Date.now() + 3_600_000).toISOString()
    const member = {
      ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'north' } },
      spec: { connection: { agent: {} }, agent: { token: { hash: token, expires } } },
    }
    const { http } = kcp.admin
    expect((await http.request('POST', members, { body: member })).status).to.equal(201)
    const claims = { kubernetesVersion: '<img src=x onerror=alert(1)>', kubeSystemUID: 'u' }
    const body = { status: { agent: { token, key, askedAt: expires, claims } } }
    const headers = ['content-type', 'application/merge-patch+json']
    expect((await http.request('PATCH', `${members}/north/status`, { body, headers })).status).to.equal(200)
    await go('#/members/north')
    await page.getByText('its agent dials out').waitFor()
    await page.getByRole('button', { name: /^Let its agent in/ }).click()
    await page.getByText(key).first().waitFor()
    await page.getByText('<img src=x onerror=alert(1)>').waitFor()
    await page.getByRole('button', { name: 'Approve this key' }).click()
    await page.getByRole('button', { name: /^Let its agent in/ }).waitFor({ state: 'detached' })
    const { spec } = await read<{ spec?: { agent?: { approval?: object } } }>(`${members}/north`)
    expect(spec?.agent?.approval).to.deep.equal({ token, key })
    const tunnel = { since: expires, protocol: 1, agentVersion: '9.9.9' }
    const connected = { status: { agent: { tunnel, certificates: [{ fingerprint: '0'.repeat(64), expires }] } } }
    expect((await http.request('PATCH', `${members}/north/status`, { body: connected, headers })).status).to.equal(200)
    await page.getByText('9.9.9 (tunnel version 1)').waitFor()
    await page.getByText(/^not open for/).waitFor()
    expect((await http.request('DELETE', `${members}/north`)).status).to.equal(200)
  })

  it('say which ClusterProfile is open, and for whom', async () => {
    const { page, go, kcp } = console_
    const root = kcp.admin.base
    const create = async (path: string, body: object): Promise<void> => {
      const { status, text } = await kcp.admin.http.request('POST', `${root}${path}`, { body })
      expect(status, text).to.equal(201)
    }
    const definition = parse(await readFile('test/integration/cluster-profile-crd.yaml', 'utf8')) as object
    await create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
    const [name, group] = ['use-east', 'virtual.kcp.dev']
    const rules = [
      { apiGroups: [group], resources: ['memberclusters/access'], resourceNames: ['east'], verbs: ['create'] },
    ]
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const subject = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'kueue<b>' }
    await create(`${rbac}/clusterroles`, { metadata: { name }, rules })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
    await create(`${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects: [subject] })
    const path = '/apis/multicluster.x-k8s.io/v1alpha2/namespaces/kcp-system/clusterprofiles'
    const isServed = async (): Promise<boolean> =>
      (await kcp.admin.http.request('GET', `${root}${path}`)).status === 200
    await waitFor(isServed, { what: 'ClusterProfiles', deadlineMs: 20_000 })
    for (const profile of ['east', 'west']) {
      const metadata = { name: profile, labels: { 'x-k8s.io/cluster-manager': 'kcp' } }
      await create(path, { ...profileKind, metadata, spec: { clusterManager: { name: 'kcp' } } })
    }
    const cluster = { server: 'https://kcp.example/services/members/east' }
    const body = { status: { accessProviders: [{ name: 'kcp', cluster }] } }
    const headers = ['content-type', 'application/merge-patch+json']
    const patched = await kcp.admin.http.request('PATCH', `${root}${path}/east/status`, { body, headers })
    expect(patched.status, patched.text).to.equal(200)
    await go('#/members')
    const row = page.getByRole('row', { name: /User kueue<b>/ })
    await row.waitFor()
    expect(await row.innerText()).to.match(/^east\s+.*Group system:masters/)
    await go('#/members/west')
    await page.getByText('Its profile gives nobody access.').waitFor()
  })

  it('say where a workload runs, and why there: each filter and score of each member', async () => {
    const { page, go } = console_
    await go('#/o/acme/apps/v1/deployments/default/web/where')
    await page.getByRole('cell', { name: 'New' }).waitFor()
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText(/Asked for: east/).waitFor()
    const east = page.getByRole('row', { name: /^east chosen/ })
    await east.waitFor()
    expect(await page.getByRole('row', { name: /^west/ }).innerText()).to.match(/near|NotAsked|Ready/)
    await keepPicture(console_, 'where')
  })

  it('show what the object owns, and a command that forwards a port', async () => {
    const { page, go } = console_
    await go('#/o/acme/apps/v1/deployments/default/web/owners')
    await page.getByRole('link', { name: /^ReplicaSet web-/ }).waitFor()
    await page
      .getByRole('link', { name: /^Pod web-/ })
      .first()
      .click()
    await page.getByText(/kubectl -n default port-forward pod\/web-.* 8080:80/).waitFor()
  })

  it('follow the logs of several containers, and search them', async () => {
    const { page, go } = console_
    const [pod = ''] = await podNames()
    await go(`#/o/acme/core/v1/pods/default/${pod}/logs`)
    await page.getByText(/simulated container "web"/).waitFor()
    await page.getByLabel('sidecar').check()
    await page.getByText(/simulated container "sidecar"/).waitFor()
    await page.getByLabel('Search the log').fill('sidecar')
    await page.locator('.log mark').first().waitFor()
    await keepPicture(console_, 'logs')
    await page.getByText(/simulated container "web"/).waitFor({ state: 'detached' })
  })

  it('open a terminal in a container, under the policy of the page', async () => {
    const { page, go } = console_
    const [pod = ''] = await podNames()
    await go(`#/o/acme/core/v1/pods/default/${pod}/terminal`)
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    await page.getByText('connected', { exact: true }).waitFor()
    await page.locator('.xterm-rows').getByText('$').first().waitFor()
    await page.keyboard.type('echo "<img src=x onerror=alert(1)>"')
    await page.keyboard.press('Enter')
    await page.locator('.xterm-rows').getByText('<img src=x onerror=alert(1)>').nth(1).waitFor()
    expect(await page.locator('.terminal img').count()).to.equal(0)
    await keepPicture(console_, 'terminal')
    await page.getByRole('button', { name: 'Disconnect' }).click()
    await page.getByText('not connected').waitFor()
  })

  it('show a move live, state by state, with its gate and its deadline', async () => {
    const { page, go } = console_
    await go('#/moves')
    await page.getByText(/Nothing moves/).waitFor()
    const states = watchStates(console_)
    await acme.http.request('PATCH', `${acme.base}${deployments}/web`, {
      body: { metadata: { annotations: { 'kcp.dev/clusters': 'west' } } },
      headers: ['Content-Type', 'application/merge-patch+json'],
    })
    await page.locator('.card').getByText('east → west').waitFor()
    await page.locator('.card .wait').first().waitFor()
    await keepPicture(console_, 'moves')
    await page.getByText(/Nothing moves/).waitFor({ timeout: 60_000 })
    expect(await states()).to.include.members(['Draining'])
    await page.locator('.past').getByText('east → west').waitFor()
  })

  it('drain a member after a look at what would move', async () => {
    const { page, go } = console_
    await acme.http.request('PATCH', `${acme.base}${deployments}/web`, {
      body: { metadata: { annotations: { 'kcp.dev/clusters': null } } },
      headers: ['Content-Type', 'application/merge-patch+json'],
    })
    await go('#/members/west')
    await page.getByRole('button', { name: /^Drain/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Drain west' })
    await dialog.getByText('All of 1 workload would move.').waitFor()
    await dialog.getByRole('row', { name: /deployment web.*east/ }).waitFor()
    expect((await read<{ spec?: { state?: string } }>(`${members}/west`)).spec?.state).to.not.equal('Draining')
    await dialog.getByRole('button', { name: 'Drain now' }).click()
    await page.getByText('What runs there: 0 workloads').waitFor({ timeout: 90_000 })
    await page.getByRole('button', { name: 'Take workloads again' }).click()
  })

  it('have no serious violation of axe', async () => {
    const { page, go } = console_
    const found: string[] = []
    const [pod = ''] = await podNames()
    const pages = [
      '#/members',
      '#/members/east',
      '#/moves',
      '#/o/acme/apps/v1/deployments/default/web/where',
      `#/o/acme/core/v1/pods/default/${pod}/logs`,
      `#/o/acme/core/v1/pods/default/${pod}/terminal`,
    ]
    // `make test-long` looks at each page in both; `make test` at every other page in each.
    for (const [scheme, colorScheme] of (['light', 'dark'] as const).entries()) {
      await page.emulateMedia({ colorScheme })
      for (const fragment of pages.filter((_, index) => isLongRun || index % 2 === scheme)) {
        await go(fragment)
        await page.waitForTimeout(900)
        for (const violation of await AxeBuilder.serious(page)) found.push(`${colorScheme} ${fragment}: ${violation}`)
      }
    }
    expect(found).to.deep.equal([])
  })
})

/** Notes the states that the board shows; the function that is returned says which. */
function watchStates({ page }: ConsoleUnderTest): () => Promise<string[]> {
  const seen = page.evaluate(`window.seenStates = new Set(); new MutationObserver(() => {
    for (const badge of document.querySelectorAll('.copy-head .badge')) seenStates.add(badge.textContent)
  }).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true }); undefined`)
  return async () => {
    await seen
    return page.evaluate<string[]>('[...seenStates]')
  }
}
