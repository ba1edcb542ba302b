// The console in a real Chromium, signed in by a link of `kcp console`. Everything that a page must never do is noted.
import { join } from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { ensureBrowser, repositoryRoot } from '#test/support/index.ts'
import { newTicket } from '#test/integration/console-browser.ts'
import { startInstance, type KcpInstance } from '#test/integration/kcp-instance.ts'

export interface ConsoleUnderTest extends AsyncDisposable {
  readonly kcp: KcpInstance
  readonly browser: Browser
  readonly page: Page
  /** Violations of the page's policy, errors of its scripts, dialogs that something opened. Empty if all is well. */
  readonly faults: string[]
  /** `https://127.0.0.1:PORT/console/`. */
  readonly url: string
  /** Goes to a fragment such as `#/clusters`. */
  readonly go: (fragment: string) => Promise<void>
  /** Opens another page, signed in as the admin of the logical cluster `name`, or of the installation. */
  readonly open: (options?: BrowserContextOptions, ...name: readonly string[]) => Promise<OpenPage>
}

export interface OpenPage {
  readonly page: Page
  readonly faults: string[]
}

/** Starts `kcp start` and Chromium. `args`: of kcp start. */
export async function openConsole(args: readonly string[] = []): Promise<ConsoleUnderTest> {
  await using stack = new AsyncDisposableStack()
  const executablePath = await ensureBrowser()
  const kcp = stack.use(await startInstance(args))
  // Root, as in containers, has no sandbox of Chromium.
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--js-flags=--expose-gc', '--enable-precise-memory-info'],
  })
  stack.defer(() => browser.close())
  const url = `https://127.0.0.1:${kcp.port}/console/`
  const open: ConsoleUnderTest['open'] = async (options = {}, ...name) => {
    const context = await browser.newContext({
      ignoreHTTPSErrors: true,
      viewport: { width: 1200, height: 760 },
      ...options,
    })
    const page = await context.newPage()
    const faults: string[] = []
    await watchFaults(page, faults)
    await page.goto(`${url}#ticket=${await newTicket(kcp, ...name)}`)
    await page.locator('.frame').waitFor()
    return { page, faults }
  }
  const first = await open()
  const owned = stack.move()
  return {
    ...first,
    kcp,
    browser,
    url,
    open,
    go: (fragment) => goTo(first.page, fragment),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Goes to a fragment. The page stays: its only path is /console/. */
export async function goTo(page: Page, fragment: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(fragment)}`)
}

async function watchFaults(page: Page, faults: string[]): Promise<void> {
  await page.exposeFunction('noteFault', (text: string) => faults.push(text))
  await page.addInitScript(`addEventListener('securitypolicyviolation', (event) =>
    noteFault('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile))`)
  page.on('pageerror', (error) => faults.push(`error: ${error.stack ?? error.message}`))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
}

/** Text that would run a script if a page took it as HTML, as an attribute, as a URL or as a style. */
export const evilText = `"><img src=x onerror=alert(1)><script>alert(2)</script>';alert(3)//<svg onload=alert(4)>javascript:alert(5)`

const keepsPictures = process.env['KCP_CONSOLE_PICTURES'] === '1'

/** Writes what the page shows to docs/images/console, if KCP_CONSOLE_PICTURES=1 asks for it. */
export async function keepPicture({ page }: ConsoleUnderTest, name: string): Promise<void> {
  if (!keepsPictures) return
  await page.setViewportSize({ width: 1000, height: 480 })
  await page.waitForTimeout(300)
  await page.screenshot({ path: join(repositoryRoot, 'docs/images/console', `${name}.png`) })
  await page.setViewportSize({ width: 1200, height: 760 })
}
