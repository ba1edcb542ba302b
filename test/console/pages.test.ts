// The pages of the console in Chromium against `kcp start`, without members: sign-in, logical clusters, tables, objects.
import { AxeBuilder } from './axe.ts'
import { expect } from 'chai'
import type { Tenant } from '#test/integration/kcp-instance.ts'
import { isLongRun } from '#test/support/index.ts'
import { evilText, goTo, keepPicture, openConsole, type ConsoleUnderTest } from './open-console.ts'

const deployments = (namespace: string): string => `/apis/apps/v1/namespaces/${namespace}/deployments`

function deployment(name: string, more: object = {}): object {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'nginx:1.27' }] } }
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, labels, ...more } },
    spec: { replicas: 2, selector: { matchLabels: labels }, template },
  }
}

describe('the pages of the console', function () {
  this.timeout(120_000)
  let console_: ConsoleUnderTest
  let acme: Tenant
  let beta: Tenant

  const create = async ({ http, base }: Tenant, path: string, body: object): Promise<void> => {
    const answer = await http.request('POST', `${base}${path}`, { body })
    expect(answer.status, answer.text).to.equal(201)
  }

  before(async () => {
    console_ = await openConsole()
    acme = await console_.kcp.tenant('acme')
    beta = await console_.kcp.tenant('beta')
    for (const tenant of [acme, beta]) await create(tenant, deployments('default'), deployment('web'))
    await create(acme, deployments('default'), deployment('api'))
  })
  after(() => console_[Symbol.asyncDispose]())
  afterEach(() => {
    expect(console_.faults.splice(0)).to.deep.equal([])
  })

  it('sign in by a link once, and keep neither the ticket nor a token where a script or a visitor finds it', async () => {
    const { page, url } = console_
    expect(page.url().replace(/#.*/, '')).to.equal(url)
    expect(page.url()).not.to.include('ticket')
    const stored = await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])')
    expect(stored).to.equal('[{"kcp-console-theme":"system"},{},""]')
    await page.goBack().catch(() => undefined)
    expect(page.url()).not.to.include('ticket')
    await page.goto(url)
    await page.locator('.frame').waitFor()
  })

  it('show the sign-in page to others, with the words of the server for a wrong token', async () => {
    const context = await console_.browser.newContext({ ignoreHTTPSErrors: true })
    const page = await context.newPage()
    await page.goto(`${console_.url}#/clusters`)
    await page.getByLabel('Or a token').fill('wrong')
    expect(await AxeBuilder.serious(page)).to.deep.equal([])
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Or a token').inputValue()).to.equal('')
    await context.close()
  })

  it('list logical clusters with their health, live, filtered by / and left by a key', async () => {
    const { page, kcp } = console_
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await page.getByRole('gridcell', { name: 'acme' }).waitFor()
    await kcp.tenant('gamma')
    await page.getByRole('gridcell', { name: 'gamma' }).waitFor()
    await keepPicture(console_, 'clusters')
    await page.keyboard.press('/')
    await page.keyboard.type('bet')
    await page.getByRole('gridcell', { name: 'gamma' }).waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/#\/t\/beta\/apps\/v1\/deployments/)
  })

  it('show a kind across all logical clusters, and each change of it without asking again', async () => {
    const { page, go } = console_
    await go('#/t/*/apps/v1/deployments')
    const rows = page.locator('.grid-body [role=row]')
    await rows.nth(1).waitFor()
    await page.locator('.dot.live').waitFor()
    await create(beta, deployments('default'), deployment('late'))
    const late = page.getByRole('row', { name: /beta.*late/ })
    await late.waitFor()
    await beta.http.request('PATCH', `${beta.base}${deployments('default')}/late`, {
      body: { spec: { replicas: 7 } },
      headers: ['Content-Type', 'application/merge-patch+json'],
    })
    await late.getByText('0/7').waitFor()
    await beta.http.request('DELETE', `${beta.base}${deployments('default')}/late`)
    await late.waitFor({ state: 'detached' })
  })

  it('show exports and bindings of all logical clusters with the columns of their kinds', async () => {
    const { page, go } = console_
    const object = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'tools' }, spec: {} }
    await create(beta, '/apis/apis.kcp.io/v1alpha2/apiexports', object)
    await go('#/clusters')
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await page.getByRole('gridcell', { name: 'tools' }).waitFor()
    await page.getByRole('columnheader', { name: 'Consumers' }).waitFor()
    expect(await AxeBuilder.serious(page)).to.deep.equal([])
  })

  it('filter by column, sort by a column, and show wide columns', async () => {
    const { page, go } = console_
    await go('#/t/*/apps/v1/deployments')
    await page.getByRole('gridcell', { name: 'api' }).waitFor()
    await page.getByLabel('Filter').fill('cluster:acme !web')
    await page.getByRole('gridcell', { name: 'web' }).first().waitFor({ state: 'detached' })
    expect(page.url()).to.include('q=cluster')
    await page.getByLabel('Filter').fill('')
    await page.getByRole('button', { name: 'Name', exact: true }).click()
    await page.locator('[role=columnheader][aria-sort=ascending]').waitFor()
    const first = (): Promise<string> => page.locator('.grid-body [role=row]').first().innerText()
    expect(await first()).to.include('api')
    await page.getByRole('button', { name: 'Name', exact: true }).click()
    await page.locator('[role=columnheader][aria-sort=descending]').waitFor()
    expect(await first()).to.include('web')
    expect(await page.getByRole('columnheader', { name: 'Images' }).count()).to.equal(0)
    await page.getByLabel('Wide').check()
    await page.getByRole('columnheader', { name: 'Images' }).waitFor()
    await keepPicture(console_, 'table')
  })

  it('choose a kind by : and a logical cluster by @', async () => {
    const { page, go } = console_
    await go('#/t/acme/apps/v1/deployments')
    await page.locator('.dot.live').waitFor()
    await page.keyboard.press(':')
    await page.getByRole('combobox').fill('cm')
    await page.getByRole('option', { name: /ConfigMap/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/#\/t\/acme\/core\/v1\/configmaps/)
    await page.keyboard.press('@')
    await page.getByRole('combobox').fill('beta')
    await page.keyboard.press('Enter')
    await page.waitForURL(/#\/t\/beta\/core\/v1\/configmaps/)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
  })

  it('change an object after a dry run and a look at the difference', async () => {
    const { page, go } = console_
    await go('#/o/acme/apps/v1/deployments/default/web/yaml')
    const editor = page.locator('.editor .cm-content')
    await editor.waitFor()
    await replaceInEditor(console_, 'replicas: 2', 'replicas: 3')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.locator('.diff .cm-changedLine, .diff .cm-insertedLine').first().waitFor()
    await keepPicture(console_, 'yaml')
    const before = await acme.http.request('GET', `${acme.base}${deployments('default')}/web`)
    expect((before.json() as { spec: { replicas: number } }).spec.replicas).to.equal(2)
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('Applied.').waitFor()
    const after = await acme.http.request('GET', `${acme.base}${deployments('default')}/web`)
    expect((after.json() as { spec: { replicas: number } }).spec.replicas).to.equal(3)
  })

  it('say what the server refuses, and show a change that came between', async () => {
    const { page, go } = console_
    await go('#/clusters')
    await go('#/o/acme/apps/v1/deployments/default/api/yaml')
    await page.locator('.editor .cm-content').waitFor()
    await replaceInEditor(console_, 'replicas: 2', 'replicaz: 2')
    await page.getByRole('button', { name: 'Check' }).click()
    await page
      .getByRole('alert')
      .getByText(/replicaz/)
      .first()
      .waitFor()
    await page.getByRole('button', { name: 'Load again' }).click()
    await page.locator('.editor .cm-content').getByText('replicaz').waitFor({ state: 'hidden' })
    await acme.http.request('PATCH', `${acme.base}${deployments('default')}/api`, {
      body: { metadata: { annotations: { other: 'change' } } },
      headers: ['Content-Type', 'application/merge-patch+json'],
    })
    await replaceInEditor(console_, 'replicas: 2', 'replicas: 4')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText(/Somebody has changed the object/).waitFor()
    await page.getByRole('button', { name: /Keep mine/ }).click()
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('Applied.').waitFor()
  })

  it('complete fields from the schema of the logical cluster', async () => {
    const { page, go } = console_
    await go('#/clusters')
    const schema = page.waitForResponse(/\/openapi\/v3\/apis\/apps\/v1/)
    await go('#/o/acme/apps/v1/deployments/default/web/yaml')
    await (await schema).finished()
    const editor = page.locator('.editor .cm-content')
    await editor.getByText('replicas').first().click()
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    await page.keyboard.type('minRe')
    await page.locator('.cm-tooltip-autocomplete').getByText('minReadySeconds').waitFor()
    await page.keyboard.press('Escape')
  })

  it('explain why a workload without a member does nothing, with what to do', async () => {
    const { page, go } = console_
    await go('#/explain/acme')
    await page
      .getByText(/kcp member join/)
      .first()
      .waitFor()
    await keepPicture(console_, 'explain')
    await go('#/o/acme/apps/v1/deployments/default/web/explain')
    await page.getByText(/it is stored and does not run/).waitFor()
  })

  it('take every field of an object as text', async () => {
    const { page, go } = console_
    await evilObjects(acme)
    for (const fragment of [
      '#/t/acme/core/v1/configmaps',
      '#/t/acme/core/v1/events',
      '#/t/acme/evil.example.com/v1/evils',
      '#/t/*/evil.example.com/v1/evils',
      '#/o/acme/evil.example.com/v1/evils/default/one',
      ...['yaml', 'events', 'owners', 'where', 'explain'].map(
        (tab) => `#/o/acme/evil.example.com/v1/evils/default/one/${tab}`,
      ),
      '#/explain/acme',
    ]) {
      await go(fragment)
      await page.waitForTimeout(700)
      expect(
        await page
          .locator('img:not(.cm-widgetBuffer), iframe, object, embed, main svg, body > script, main script')
          .count(),
        fragment,
      ).to.equal(0)
      expect(await page.locator('a[href^="javascript:" i]').count(), fragment).to.equal(0)
    }
    await go('#/o/acme/evil.example.com/v1/evils/default/one')
    await page.getByText('onerror=alert(1)').first().waitFor()
    await page.getByText('⟨U+202E⟩').first().waitFor()
  })

  // `make test-long` looks at each page in both; `make test` at every other page in each.
  for (const [scheme, colorScheme] of (['light', 'dark'] as const).entries())
    it(`have no serious violation of axe in ${colorScheme}`, async () => {
      const { page, go } = console_
      await page.emulateMedia({ colorScheme })
      const found: string[] = []
      for (const fragment of allPages.filter((_, index) => isLongRun || index % 2 === scheme)) {
        await go(fragment)
        await page.waitForTimeout(900)
        for (const violation of await AxeBuilder.serious(page)) found.push(`${fragment}: ${violation}`)
      }
      await page.keyboard.press('?')
      for (const violation of await AxeBuilder.serious(page)) found.push(`help: ${violation}`)
      await page.keyboard.press('Escape')
      await page.keyboard.press(':')
      await page.getByRole('option').first().waitFor()
      for (const violation of await AxeBuilder.serious(page)) found.push(`palette: ${violation}`)
      await page.keyboard.press('Escape')
      expect(found).to.deep.equal([])
    })

  it('fit a phone', async () => {
    const { page, faults } = await console_.open({
      viewport: { width: 390, height: 780 },
      isMobile: true,
      hasTouch: true,
    })
    for (const fragment of allPages) {
      await goTo(page, fragment)
      await page.waitForTimeout(500)
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      expect(overflow, fragment).to.be.at.most(0)
    }
    expect(faults).to.deep.equal([])
    await page.context().close()
  })

  it('are limited to one logical cluster for its admin', async () => {
    const { page, faults } = await console_.open({}, 'beta')
    await goTo(page, '#/clusters')
    await page.getByRole('gridcell', { name: 'beta' }).waitFor()
    expect(await page.getByRole('gridcell', { name: 'acme' }).count()).to.equal(0)
    await goTo(page, '#/t/*/apps/v1/deployments')
    await page.getByRole('row', { name: /beta.*web/ }).click()
    await page.waitForURL(/#\/o\/beta\/apps\/v1\/deployments\/default\/web/)
    await page.getByText('Deployment ·').waitFor()
    await goTo(page, '#/t/acme/apps/v1/deployments')
    await page.getByRole('alert').waitFor()
    expect(faults).to.deep.equal([])
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Or a token').waitFor()
    await page.reload()
    await page.getByLabel('Or a token').waitFor()
    await page.context().close()
  })

  const allPages = [
    '#/clusters',
    '#/t/*/apps/v1/deployments',
    '#/t/acme/core/v1/pods',
    '#/o/acme/apps/v1/deployments/default/web',
    ...['yaml', 'events', 'owners', 'where', 'explain'].map((tab) => `#/o/acme/apps/v1/deployments/default/web/${tab}`),
    '#/members',
    '#/moves',
    '#/explain/acme',
    ...['#/usage/acme', '#/audit/acme', '#/sleep', '#/snapshots'],
  ]
})

/** Types a change into the editor, as a user does. */
async function replaceInEditor({ page }: ConsoleUnderTest, from: string, to: string): Promise<void> {
  const line = page.locator('.editor .cm-line').filter({ hasText: from }).first()
  await line.click()
  await page.keyboard.press('Home')
  await page.keyboard.press('Shift+End')
  await page.keyboard.type(to)
}

/** Objects with text that would run as a script in every field that takes any text. */
async function evilObjects({ http, base }: Tenant): Promise<void> {
  const post = async (path: string, body: object): Promise<void> => {
    const answer = await http.request('POST', `${base}${path}`, { body })
    if (answer.status !== 201) throw new Error(answer.text)
  }
  const metadata = {
    name: 'one',
    namespace: 'default',
    annotations: { evil: evilText, direction: '\u202egnp.exe', escape: '\u001b]0;t\u0007' },
  }
  await post('/api/v1/namespaces/default/configmaps', {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata },
    data: { evil: evilText },
  })
  const text = { type: 'string' }
  await post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    ...{
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'evils.evil.example.com' },
    },
    spec: {
      group: 'evil.example.com',
      scope: 'Namespaced',
      names: { plural: 'evils', singular: 'evil', kind: 'Evil' },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: evilText,
              properties: {
                spec: { type: 'object', properties: { text } },
                status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              },
            },
          },
          additionalPrinterColumns: [
            { name: '<b onmouseover=alert(9)>Col</b>', description: evilText, jsonPath: '.spec.text', ...text },
          ],
        },
      ],
    },
  })
  await untilServed(() =>
    post('/apis/evil.example.com/v1/namespaces/default/evils', {
      ...{ apiVersion: 'evil.example.com/v1', kind: 'Evil', metadata, spec: { text: evilText } },
    }),
  )
  const one = `${base}/apis/evil.example.com/v1/namespaces/default/evils/one`
  const conditions = [
    { type: evilText, status: 'False', reason: evilText, message: evilText, lastTransitionTime: evilText },
  ]
  await http.request('PATCH', `${one}/status`, {
    body: { status: { conditions } },
    headers: ['Content-Type', 'application/merge-patch+json'],
  })
  const {
    metadata: { uid },
  } = (await http.request('GET', one)).json() as unknown as { metadata: { uid: string } }
  await post('/api/v1/namespaces/default/events', {
    ...{
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'evil' },
      type: 'Warning',
      reason: evilText.slice(0, 100),
      message: evilText,
    },
    involvedObject: { apiVersion: 'evil.example.com/v1', kind: 'Evil', namespace: 'default', name: 'one', uid },
    source: { component: evilText },
    lastTimestamp: new Date().toISOString(),
  })
}

async function untilServed(attempt: () => Promise<void>): Promise<void> {
  const end = Date.now() + 10_000
  for (;;) {
    try {
      await attempt()
      return
    } catch (error) {
      if (Date.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}
