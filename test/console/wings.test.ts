// The pages of the console about usage, audit, sleep and snapshots, in Chromium against `kcp start`: for the admin of the
// installation, and for the admin of one logical cluster.
import { expect } from 'chai'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Tenant } from '#test/integration/kcp-instance.ts'
import { runKcp, waitFor } from '#test/support/index.ts'
import { AxeBuilder } from './axe.ts'
import { evilText, goTo, openConsole, type ConsoleUnderTest } from './open-console.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const kinds = '/clusters/root/apis/kcp.dev/v1alpha1'

describe('the pages of the console about usage, audit, sleep and snapshots', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let console_: ConsoleUnderTest
  let acme: Tenant
  let beta: Tenant

  const configure = async (name: string, spec: object, annotations: object = {}): Promise<void> => {
    const headers = ['content-type', 'application/merge-patch+json']
    const body = { metadata: { annotations }, spec }
    const answer = await console_.kcp.admin.http.request('PATCH', `${kinds}/logicalclusters/${name}`, { body, headers })
    expect(answer.status, answer.text).to.equal(200)
  }
  const create = async ({ http, base }: Tenant, name: string): Promise<number> =>
    (await http.request('POST', `${base}${maps}`, { body: { metadata: { name } } })).status
  const serious = async (): Promise<void> => {
    expect(await AxeBuilder.serious(console_.page)).to.deep.equal([])
  }

  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kcp-console-snapshots-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    mkdirSync(join(folder, 'main'))
    console_ = stack.use(await openConsole(['--usage-every', '1', '--snapshot-directory', folder]))
    acme = await console_.kcp.tenant('acme')
    beta = await console_.kcp.tenant('beta')
  })
  after(() => stack.disposeAsync())
  afterEach(() => {
    expect(console_.faults.splice(0)).to.deep.equal([])
  })

  it('show usage beside limits, what is near, and the last hours; to a tenant his own alone', async () => {
    const { page, go, kcp, open } = console_
    await configure('acme', { limits: { objects: 12 } })
    const refused = async (): Promise<boolean> => (await create(acme, `n-${Date.now()}`)) === 403
    await waitFor(refused, { what: 'the limit to be reached', deadlineMs: 20_000, intervalMs: 10 })
    const rows = async (): Promise<boolean> => {
      const { stdout } = await runKcp(['usage', 'acme', '-o', 'csv', '--root-dir', kcp.rootDir])
      return stdout.includes(',acme,')
    }
    await waitFor(rows, { what: 'rows of usage', deadlineMs: 20_000, intervalMs: 500 })
    await go('#/usage')
    await page.getByRole('row', { name: /acme limit reached/ }).waitFor()
    await page.getByRole('meter', { name: 'objects: 12 of 12,' }).waitFor()
    await serious()
    await page.getByRole('link', { name: 'acme', exact: true }).click()
    await page.getByText(/nothing is left of objects/).waitFor()
    const requests = page.locator('tbody tr').first().locator('td').nth(1)
    expect(Number(await requests.textContent())).to.be.greaterThan(0)
    await serious()
    const other = await open({}, 'beta')
    await goTo(other.page, '#/usage/acme')
    await other.page
      .getByRole('alert')
      .getByText(/may not see its usage/)
      .waitFor()
    await goTo(other.page, '#/usage')
    await other.page.getByText('Usage of beta').waitFor()
    expect(await other.page.getByText('acme').count()).to.equal(0)
    expect(other.faults).to.deep.equal([])
    await other.page.context().close()
  })

  it('show the lines of an audit log as they come, filtered; to a tenant his own alone', async () => {
    const { page, go, open } = console_
    const rules = [{ level: 'None', nonResourceURLs: ['*'] }, { level: 'Metadata' }]
    for (const name of ['acme', 'beta'])
      await configure(name, { audit: { rules, omitStages: ['RequestReceived'], readable: true } })
    await beta.http.request('GET', `${beta.base}${maps}/of-beta`)
    await acme.http.request('GET', `${acme.base}${maps}/${encodeURIComponent(evilText)}`)
    await go('#/audit')
    await page.getByRole('link', { name: 'acme', exact: true }).click()
    await page
      .getByRole('row', { name: /admin get 404 default\/configmaps\// })
      .first()
      .waitFor()
    await acme.http.request('GET', `${acme.base}${maps}/later`)
    await page.getByRole('row', { name: /default\/configmaps\/later/ }).waitFor()
    await page.getByLabel('Filter lines').fill('!later configmaps/')
    await page.getByRole('row', { name: /default\/configmaps\/later/ }).waitFor({ state: 'detached' })
    await serious()
    const other = await open({}, 'beta')
    await goTo(other.page, '#/audit')
    await other.page.getByRole('row', { name: /configmaps\/of-beta/ }).waitFor()
    expect(await other.page.getByText('acme').count()).to.equal(0)
    await goTo(other.page, '#/audit/acme')
    await other.page.getByRole('alert').waitFor()
    expect(await other.page.getByRole('row').count()).to.equal(0)
    expect(other.faults).to.deep.equal([])
    await other.page.context().close()
  })

  it('show what sleeps, since when and why, and wake it: an admin by an order, a tenant by a write', async () => {
    const { page, go, open, kcp } = console_
    await go('#/sleep')
    await page.getByText('No logical cluster has rules of sleep.').waitFor()
    for (const name of ['acme', 'beta']) await configure(name, { sleep: {} }, { 'kcp.dev/sleep-order': 'now' })
    const isAsleep = async (name: string): Promise<boolean> => {
      const { text } = await kcp.admin.http.request('GET', `${kinds}/logicalclusters/${name}`)
      return text.includes('"asleepSince"')
    }
    await page.getByRole('row', { name: /acme Asleep/ }).waitFor({ timeout: 30_000 })
    await page.getByRole('row', { name: /beta Asleep/ }).waitFor({ timeout: 30_000 })
    await serious()
    await page.getByRole('row', { name: /acme/ }).getByRole('button', { name: 'Wake' }).click()
    await page.getByRole('row', { name: /acme Awake/ }).waitFor({ timeout: 30_000 })
    expect([await isAsleep('acme'), await isAsleep('beta')]).to.deep.equal([false, true])
    const other = await open({}, 'beta')
    await goTo(other.page, '#/sleep')
    await other.page.getByRole('button', { name: 'Wake' }).click()
    await other.page.getByRole('row', { name: /beta Awake/ }).waitFor({ timeout: 30_000 })
    expect(await other.page.getByText('acme').count()).to.equal(0)
    expect(other.faults).to.deep.equal([])
    await other.page.context().close()
  })

  it('take a snapshot, show it with stores and schedules, and restore it under another name', async () => {
    const { page, go, open, kcp } = console_
    const make = async (kind: string, plural: string, name: string, spec: object): Promise<void> => {
      const body = { apiVersion: 'kcp.dev/v1alpha1', kind, metadata: { name }, spec }
      const answer = await kcp.admin.http.request('POST', `${kinds}/${plural}`, { body })
      expect(answer.status, answer.text).to.equal(201)
    }
    await create(beta, 'saved')
    await go('#/snapshots')
    await page.getByText('There is no snapshot in a store.').waitFor()
    await make('SnapshotStore', 'snapshotstores', 'main', { file: { path: 'main' } })
    await make('SnapshotSchedule', 'snapshotschedules', 'nightly', { schedule: '0 3 * * *', store: 'main' })
    await page.getByRole('row', { name: /nightly 0 3 \* \* \* \(UTC\) main 7 last/ }).waitFor()
    await page.getByRole('row', { name: /main folder main not encrypted/ }).waitFor()
    await page.getByRole('button', { name: 'New snapshot' }).click()
    await page.getByLabel('Logical cluster', { exact: true }).fill('beta')
    await page.getByLabel('Name (empty: chosen for you)').fill('by-hand')
    await serious()
    await page.getByRole('button', { name: 'Take it' }).click()
    await page.getByText('It is being taken.').waitFor()
    await page.keyboard.press('Escape')
    const row = page.getByRole('row', { name: /by-hand beta main Completed/ })
    await row.waitFor({ timeout: 30_000 })
    await row.getByRole('button', { name: 'Restore' }).click()
    await page.getByText('kcp snapshot verify by-hand').waitFor()
    await page.getByLabel('Name of the new logical cluster').fill('beta-again')
    await page.getByRole('button', { name: 'Restore under this name' }).click()
    await page.getByText(/"beta-again" is being filled/).waitFor()
    const restored = async (): Promise<boolean> =>
      (await kcp.admin.http.request('GET', `/clusters/beta-again${maps}/saved`)).status === 200
    await waitFor(restored, { what: 'the restored logical cluster', deadlineMs: 30_000, intervalMs: 100 })
    const other = await open({}, 'beta')
    await goTo(other.page, '#/snapshots')
    await other.page.getByText('kubectl get --raw /snapshot > beta.kcp.tar.zst').waitFor()
    expect(await other.page.getByText('by-hand').count()).to.equal(0)
    expect(other.faults).to.deep.equal([])
    await other.page.context().close()
  })
})
