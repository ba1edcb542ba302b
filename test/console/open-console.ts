// The console in a real Chromium, signed in by a link of `kcp console`. Everything that a page must never do is noted.
import { join } from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { ensureBrowser, repositoryRoot } from '#test/support/index.ts'
import { newTicket } from '#test/integration/console-browser.ts'
import { startInstance, type KcpInstance } from '#test/integration/kcp-instance.ts'

export interface OpenPage {
  readonly page: Page
  /** Violations of the page's policy, errors of its scripts, dialogs that something opened. Empty if all is well. */
  readonly faults: string[]
}

/** Chromium with one page that is signed in. */
export interface OpenBrowser extends OpenPage, AsyncDisposable {
  readonly browser: Browser
  /** Goes to a fragment such as `#/clusters`. */
  readonly go: (fragment: string) => Promise<void>
  /** Opens another page, signed in as the admin of the logical cluster `name`, or of the installation. */
  readonly open: (options?: BrowserContextOptions, ...name: readonly string[]) => Promise<OpenPage>
}

export interface ConsoleUnderTest extends OpenBrowser {
  readonly kcp: KcpInstance
  /** `https://127.0.0.1:PORT/console/`. */
  readonly url: string
}

/** Starts `kcp start` and Chromium. `args`: of kcp start. */
export async function openConsole(args: readonly string[] = []): Promise<ConsoleUnderTest> {
  await using stack = new AsyncDisposableStack()
  const kcp = stack.use(await startInstance(args))
  const url = `https://127.0.0.1:${kcp.port}/console/`
  const browser = stack.use(await openBrowser(async (...name) => `${url}#ticket=${await newTicket(kcp, ...name)}`))
  const owned = stack.move()
  return { ...browser, kcp, url, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Starts Chromium. `newLink` gives a link that signs in once, as `kcp console NAME` prints it. */
export async function openBrowser(newLink: (...name: readonly string[]) => Promise<string>): Promise<OpenBrowser> {
  const executablePath = await ensureBrowser()
  // Root, as in containers, has no sandbox of Chromium.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--js-flags=--expose-gc', '--enable-precise-memory-info']
  const browser = await chromium.launch({ executablePath, args })
  const open: OpenBrowser['open'] = async (options = {}, ...name) => {
    const viewport = { width: 1200, height: 760 }
    const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport, ...options })
    const page = await context.newPage()
    const faults: string[] = []
    await watchFaults(page, faults)
    await opened(page, () => newLink(...name))
    return { page, faults }
  }
  try {
    const { page, faults } = await open()
    const go = (fragment: string): Promise<void> => goTo(page, fragment)
    return { browser, page, faults, go, open, [Symbol.asyncDispose]: () => browser.close() }
  } catch (error) {
    await browser.close()
    throw error
  }
}

/**
 * Opens a link, or another one: while other tests make and remove network interfaces, Chromium breaks the requests that
 * are under way.
 */
async function opened(page: Page, newLink: () => Promise<string>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await page.goto(await newLink())
      await page.locator('.frame').waitFor({ timeout: 15_000 })
      return
    } catch (error) {
      if (tries >= 3) throw error
      // Chromium may still be on its way to its own page about the error, which interrupts this.
      await page.goto('about:blank').catch(() => undefined)
    }
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
export async function keepPicture({ page }: OpenPage, name: string): Promise<void> {
  if (!keepsPictures) return
  await page.setViewportSize({ width: 1000, height: 480 })
  await page.waitForTimeout(300)
  await page.screenshot({ path: join(repositoryRoot, 'docs/images/console', `${name}.png`) })
  await page.setViewportSize({ width: 1200, height: 760 })
}
