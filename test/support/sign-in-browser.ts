// A browser for pages of identity providers: follows redirects, keeps cookies, fills in the forms for a name and a password,
// and agrees to every question. It runs no scripts.
import http from 'node:http'
import https from 'node:https'

export interface SignInBrowserOptions {
  /** PEM certificate of the authority of the provider. */
  readonly authority: string
  readonly username: string
  readonly password: string
}

interface Page {
  readonly url: URL
  readonly status: number
  readonly text: string
}

const maxSteps = 30

export class SignInBrowser {
  readonly #options: SignInBrowserOptions
  /** Cookies by host with its port, so that two providers of this machine have their own. */
  readonly #cookies = new Map<string, Map<string, string>>()

  constructor(options: SignInBrowserOptions) {
    this.#options = options
  }

  /** Opens the link, signs in, and resolves with the last page. */
  async open(link: string): Promise<Page> {
    let page = await this.#load(new URL(link))
    for (let step = 0; step < maxSteps; step++) {
      const form = /<form\b([^>]*)>([\s\S]*?)<\/form>/i.exec(page.text)
      const agreed = /location\.href='([^']*allowed)'/.exec(page.text)?.[1]
      if (form !== null) page = await this.#submit(page, form[1] ?? '', form[2] ?? '')
      else if (agreed !== undefined) page = await this.#load(new URL(agreed, page.url))
      else return page
    }
    throw new Error(`the provider asks without end; last: ${page.url.href} ${page.status}\n${page.text}`)
  }

  async #submit(page: Page, attributes: string, content: string): Promise<Page> {
    const fields = new URLSearchParams()
    for (const [, input = ''] of content.matchAll(/<input\b([^>]*)>/gi)) {
      const name = attribute(input, 'name')
      if (name === undefined) continue
      if (name === 'login' || name === 'username') fields.set(name, this.#options.username)
      else if (name === 'password') fields.set(name, this.#options.password)
      else fields.set(name, attribute(input, 'value') ?? '')
    }
    const action = attribute(attributes, 'action') ?? page.url.href
    return await this.#load(new URL(action, page.url), fields.toString())
  }

  async #load(url: URL, form?: string, steps = 0): Promise<Page> {
    if (steps > maxSteps) throw new Error(`too many redirects; last: ${url.href}`)
    const jar = this.#cookies.get(url.host) ?? new Map<string, string>()
    this.#cookies.set(url.host, jar)
    const { promise, resolve, reject } = Promise.withResolvers<Page>()
    const headers = {
      cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(form !== undefined && {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(form),
        origin: url.origin,
      }),
    }
    const { authority: ca } = this.#options
    const options = { method: form === undefined ? 'GET' : 'POST', headers, agent: false as const }
    const answered = (response: http.IncomingMessage): void => {
      for (const cookie of response.headers['set-cookie'] ?? []) keep(jar, cookie)
      const { location } = response.headers
      if (location !== undefined && (response.statusCode ?? 0) < 400) {
        response.resume()
        resolve(this.#load(new URL(location, url), undefined, steps + 1))
        return
      }
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () =>
        resolve({ url, status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
      )
    }
    const sent =
      url.protocol === 'https:'
        ? https.request(url, { ...options, ca }, answered)
        : http.request(url, options, answered)
    sent.on('error', reject)
    sent.end(form)
    return await promise
  }
}

function keep(jar: Map<string, string>, cookie: string): void {
  const [pair = '', ...rest] = cookie.split(';')
  const at = pair.indexOf('=')
  const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
  const expires = rest.map((one) => /^\s*expires=(.*)$/i.exec(one)?.[1]).find((one) => one !== undefined)
  const isOver = value === '' || (expires !== undefined && Date.parse(expires) <= Date.now())
  if (isOver) jar.delete(name)
  else jar.set(name, value)
}

function attribute(text: string, name: string): string | undefined {
  const [, value] = new RegExp(`\\b${name}="([^"]*)"`, 'i').exec(text) ?? []
  return value?.replaceAll('&amp;', '&').replaceAll('&#x2F;', '/')
}
