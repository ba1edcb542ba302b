// What a browser does with the console: it keeps the cookie, and adds the headers that pages cannot set.
import { runKcp } from '#test/support/index.ts'
import type { KcpInstance } from './kcp-instance.ts'
import { openRawClient, type RawClient, type RawResponse } from './raw-client.ts'

export interface Browser extends AsyncDisposable {
  /** The page fetches this path of its own origin. `headers` are added. */
  fetch(method: string, path: string, options?: { body?: object; headers?: readonly string[] }): Promise<RawResponse>
  /** Signs in; the cookie is kept. */
  signIn(credentials: object): Promise<RawResponse>
  /** The cookie as sent; empty before the sign-in. */
  cookie: string
  /** The headers of the page's own requests. */
  headers(): string[]
  readonly http: RawClient
  readonly origin: string
}

export function openBrowser(port: number, { host = '127.0.0.1' }: { host?: string } = {}): Browser {
  const http = openRawClient({ port, host })
  const origin = `https://${host}:${port}`
  const browser: Browser = {
    cookie: '',
    origin,
    http,
    headers: () => [
      ...['Origin', origin, 'Sec-Fetch-Site', 'same-origin', 'Sec-Fetch-Dest', 'empty', 'X-Kcp-Console', '1'],
      ...['User-Agent', 'Mozilla/5.0 (test)'],
      ...(browser.cookie === '' ? [] : ['Cookie', browser.cookie]),
    ],
    fetch: (method, path, { body, headers = [] } = {}) =>
      http.request(method, path, { headers: [...browser.headers(), ...headers], ...(body && { body }) }),
    async signIn(credentials) {
      const answer = await browser.fetch('POST', '/console/api/session', { body: credentials })
      const [cookie] = answer.headers['set-cookie'] ?? []
      if (cookie !== undefined) browser.cookie = cookie.split(';')[0] ?? ''
      return answer
    },
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
  return browser
}

/** The ticket of a link that `kcp console` prints. */
export async function newTicket(
  { rootDir }: Pick<KcpInstance, 'rootDir'>,
  ...args: readonly string[]
): Promise<string> {
  const { stdout } = await runKcp(['console', ...args, '--root-dir', rootDir])
  const [, ticket] = /^https:\/\/127\.0\.0\.1:\d+\/console\/#ticket=(\S+)$/m.exec(stdout) ?? []
  if (ticket === undefined) throw new Error(`kcp console printed no link: ${stdout}`)
  return ticket
}

/** A browser that is signed in as the admin of the installation, or of the logical cluster `name`. */
export async function signedIn(kcp: KcpInstance, ...name: readonly string[]): Promise<Browser> {
  const browser = openBrowser(kcp.port)
  const answer = await browser.signIn({ ticket: await newTicket(kcp, ...name) })
  if (answer.status !== 201) throw new Error(`the sign-in was refused: ${answer.text}`)
  return browser
}
