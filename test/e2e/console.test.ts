// The console in Chromium before two real members: pods that kubelets run, their logs and terminals, a move and a drain.
import { expect } from 'chai'
import { ensureBrowser, itInLongRun, kubectl, needsNodes, runKcp } from '#test/support/index.ts'
import { openBrowser, type OpenBrowser } from '#test/console/open-console.ts'
import { deleteAll } from './delete-all.ts'
import { createLogicalCluster, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab } from './lab.ts'
import { toolbox } from './manifests.ts'

endLabAfterAll()
describe('the console before real members', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let installation: Installation
  let console_: OpenBrowser
  let alice = ''

  const annotate = (value: string): Promise<unknown> =>
    kubectl(alice, ['annotate', '--overwrite', 'deployment/toolbox', `kcp.dev/clusters${value}`])

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    await ensureBrowser()
    const clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    for (const member of [clusters.east, clusters.west]) await installation.join(member)
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    await kubectl(alice, ['apply', '-f', '-'], { input: toolbox('default') })
    await annotate('=east')
    await kubectl(alice, ['rollout', 'status', 'deployment/toolbox', '--timeout=120s'])
    console_ = stack.use(
      await openBrowser(async (...name) => {
        const { stdout } = await runKcp(['console', ...name, ...installation.flags])
        return stdout.split('\n')[0] ?? ''
      }),
    )
  })
  after(async function () {
    this.timeout(120_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })
  afterEach(() => {
    expect(console_.faults.splice(0)).to.deep.equal([])
  })

  it('shows both members, and the pods that run there', async () => {
    const { page, go } = console_
    await go('#/members')
    for (const member of ['east', 'west']) await page.getByRole('link', { name: member, exact: true }).waitFor()
    await go('#/t/*/core/v1/pods')
    await page.getByRole('row', { name: /acme.*toolbox.*2\/2.*Running/ }).waitFor()
  })

  it('follows the log of a real container, and runs a command in it', async () => {
    const { page, go } = console_
    await go('#/t/acme/core/v1/pods')
    await page.getByRole('row', { name: /toolbox.*Running/ }).click()
    await page.getByRole('link', { name: 'Logs' }).click()
    await page.getByText(/Started HTTP server/).waitFor()
    await page.getByRole('link', { name: 'Terminal' }).click()
    await page.getByLabel('Command').fill('/agnhost entrypoint-tester hello from the page')
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    await page
      .locator('.xterm-rows')
      .getByText(/hello from the page/)
      .waitFor()
    await page.getByText('The command has ended.').waitFor()
    await page.getByLabel('Command').fill('/no/such/program')
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    await page
      .locator('.notice')
      .getByText(/no such file|not found|exit/i)
      .waitFor()
  })

  it('shows every page, and every tab of a workload and of its pod, without an error', async () => {
    const { page, go } = console_
    const { stdout: pod } = await kubectl(alice, ['get', 'pods', '-o', 'jsonpath={.items[0].metadata.name}'])
    const deployment = '#/o/acme/apps/v1/deployments/default/toolbox'
    const pages: Readonly<Record<string, RegExp>> = {
      '#/clusters': /acme/,
      '#/t/*/apps/v1/deployments': /toolbox/,
      '#/t/acme/core/v1/nodes': /east-node/,
      '#/t/*/apis.kcp.io/v1alpha2/apiexports': /Nothing to show/,
      '#/t/*/apis.kcp.io/v1alpha2/apibindings': /Nothing to show/,
      '#/members': /west/,
      '#/members/east': /What runs there: 1 workload/,
      '#/adoptions': /No namespace was adopted/,
      '#/moves': /Nothing moves/,
      '#/volumes': /No volume moves/,
      '#/explain/acme': /acme/,
      [deployment]: /toolbox/,
      [`${deployment}/yaml`]: /kind: Deployment/,
      [`${deployment}/events`]: /Placed|Synced|Serving|toolbox/,
      [`${deployment}/owners`]: /ReplicaSet toolbox-/,
      [`${deployment}/where`]: /Serving/,
      [`${deployment}/explain`]: /toolbox/,
      [`#/o/acme/core/v1/pods/default/${pod}/yaml`]: /kind: Pod/,
      [`#/o/acme/core/v1/pods/default/${pod}/events`]: /Started|Pulled|Created/,
      [`#/o/acme/core/v1/pods/default/${pod}/logs`]: /Started HTTP server/,
      [`#/o/acme/core/v1/pods/default/${pod}/terminal`]: /Connect/,
      [`#/o/acme/core/v1/pods/default/${pod}/explain`]: /toolbox/,
    }
    for (const [fragment, shown] of Object.entries(pages)) {
      await go(fragment)
      await page.locator('main').getByText(shown).first().waitFor()
      expect(await page.locator('.notice.bad').allInnerTexts(), fragment).to.deep.equal([])
    }
  })

  // test/console/members.test.ts does both with simulated members.
  itInLongRun('shows a move until it is complete', async () => {
    const { page, go } = console_
    await go('#/moves')
    await page.getByText(/Nothing moves/).waitFor()
    await annotate('=west')
    await page.locator('.card').getByText('east → west').waitFor()
    await page.getByText(/Nothing moves/).waitFor({ timeout: 120_000 })
    await page.locator('.past').getByText('east → west').waitFor()
    await page.getByRole('link', { name: /deployment toolbox/ }).click()
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByRole('row', { name: /^west chosen/ }).waitFor({ timeout: 60_000 })
  })

  itInLongRun('drains a member after its preview', async () => {
    const { page, go } = console_
    await annotate('-')
    await go('#/members/west')
    await page.getByRole('button', { name: /^Drain/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Drain west' })
    await dialog.getByRole('row', { name: /deployment toolbox.*east/ }).waitFor({ timeout: 60_000 })
    await dialog.getByRole('button', { name: 'Drain now' }).click()
    await page.getByText('What runs there: 0 workloads').waitFor({ timeout: 120_000 })
  })
})
