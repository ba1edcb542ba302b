// Attacks on the console from other pages, from tenants, and with what a browser sends along by itself.
import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { waitFor } from '#test/support/index.ts'
import { newTicket, openBrowser, signedIn, type Browser } from './console-browser.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { openRawClient } from './raw-client.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
const inAcme = `/console/k8s/clusters/acme${configMaps}`

describe('the console, attacked', function () {
  this.timeout(180_000)
  let kcp: KcpInstance
  let acme: Tenant
  let globex: Tenant
  let folder: string
  let admin: Browser
  let tenant: Browser

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kcp-console-attacked-'))
    kcp = await startInstance(['--audit-log', join(folder, 'audit.log'), '--log-level', 'debug'])
    ;[acme, globex] = [await kcp.tenant('acme'), await kcp.tenant('globex')]
    admin = await signedIn(kcp)
    tenant = await signedIn(kcp, 'acme')
    await acme.kubectl(['create', 'configmap', 'target', '--from-literal=a=b'])
    await globex.kubectl(['create', 'secret', 'generic', 'of-globex', '--from-literal=password=hunter2'])
  })
  after(async () => {
    await admin[Symbol.asyncDispose]()
    await tenant[Symbol.asyncDispose]()
    await kcp[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Headers of a request that another page makes the browser of the admin send. */
  const forged = (origin: string | undefined, site: string | undefined, ...more: string[]): string[] => [
    ...['Cookie', admin.cookie],
    ...(origin === undefined ? [] : ['Origin', origin]),
    ...(site === undefined ? [] : ['Sec-Fetch-Site', site]),
    ...more,
  ]
  const otherOrigins = (): [title: string, headers: string[]][] => [
    ['another site', forged('https://evil.example', 'cross-site', 'X-Kcp-Console', '1')],
    [
      'another site, by a browser without Fetch Metadata',
      forged('https://evil.example', undefined, 'X-Kcp-Console', '1'),
    ],
    ['another port of the same host', forged(`https://127.0.0.1:${kcp.port + 1}`, 'same-site', 'X-Kcp-Console', '1')],
    ['the same host without TLS', forged(`http://127.0.0.1:${kcp.port}`, 'cross-site', 'X-Kcp-Console', '1')],
    ['a sandboxed frame (Origin null)', forged('null', 'cross-site', 'X-Kcp-Console', '1')],
    ['nowhere (no Origin)', forged(undefined, undefined, 'X-Kcp-Console', '1')],
  ]

  describe('by another page that writes with the cookie of the admin (CSRF)', () => {
    const writes = [
      ['POST', inAcme, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'forged' } }],
      [
        'PUT',
        `${inAcme}/target`,
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'target' }, data: { a: 'c' } },
      ],
      ['PATCH', `${inAcme}/target`, { data: { a: 'c' } }],
      ['DELETE', `${inAcme}/target`, {}],
      ['DELETE', inAcme, {}],
      ['POST', '/console/api/session', { ticket: 'x' }],
      ['DELETE', '/console/api/session', {}],
    ] as const

    it('is refused for every verb and every foreign origin, and changes nothing', async () => {
      for (const [title, headers] of otherOrigins())
        for (const [method, path, body] of writes) {
          const typed = method === 'PATCH' ? ['Content-Type', 'application/merge-patch+json'] : []
          const answer = await admin.http.request(method, path, { headers: [...headers, ...typed], body })
          expect(answer.status, `${method} ${path} from ${title}: ${answer.text}`).to.equal(403)
        }
      // A form of HTML: its Origin may be stripped by nothing, but it cannot add the header of the page.
      const form = forged(admin.origin, 'same-origin', 'Content-Type', 'text/plain')
      expect((await admin.http.request('POST', inAcme, { headers: form, body: '{}' })).status).to.equal(403)
      const { stdout } = await acme.kubectl([
        'get',
        'configmap',
        '-o',
        'jsonpath={.items[*].metadata.name} {.items[*].data.a}',
      ])
      expect(stdout).to.include('target').and.include(' b').and.not.include('forged')
      expect((await admin.fetch('GET', '/console/api/session')).status).to.equal(200)
    })

    it('is refused for every upgrade to a WebSocket', async () => {
      const pods = '/console/k8s/clusters/acme/api/v1/namespaces/default/pods/x'
      const paths = [`${pods}/exec?command=sh`, `${pods}/attach`, `${pods}/portforward?ports=80`, `${inAcme}?watch=1`]
      const socket = ['Upgrade', 'websocket', 'Sec-WebSocket-Version', '13']
      const key = (): string[] => ['Sec-WebSocket-Key', randomBytes(16).toString('base64')]
      for (const [title, headers] of otherOrigins())
        for (const path of paths) {
          const { status } = await admin.http.upgrade(path, [...socket, ...key(), ...headers])
          expect(status, `${path} from ${title}`).to.equal(403)
        }
      const own = forged(admin.origin, 'same-origin')
      const watch = await admin.http.upgrade(`${inAcme}?watch=1`, [...socket, ...key(), ...own])
      expect(watch.status).to.equal(101)
      watch.socket?.destroy()
    })

    it('cannot read by the cookie either', async () => {
      for (const site of ['cross-site', 'same-site']) {
        const headers = ['Cookie', admin.cookie, 'Sec-Fetch-Site', site]
        for (const path of [inAcme, '/console/api/session', '/console/api/clusters'])
          expect((await admin.http.request('GET', path, { headers })).status, `${path} ${site}`).to.equal(403)
      }
      const { headers } = await admin.fetch('GET', inAcme)
      expect(headers).not.to.have.property('access-control-allow-origin')
      expect((await admin.http.request('OPTIONS', inAcme, { headers: otherOrigins()[0]?.[1] ?? [] })).status).to.equal(
        403,
      )
    })
  })

  describe('by a page that shows it', () => {
    it('in a frame, as a script or as a document: refused by headers and by destination', async () => {
      for (const path of ['/console/', '/console/assets/none.js', inAcme, '/console/api/session']) {
        const { headers } = await admin.fetch('GET', path)
        expect(headers['x-frame-options'], path).to.equal('DENY')
        expect(headers['content-security-policy'], path).to.include("frame-ancestors 'none'")
        expect(headers['cross-origin-resource-policy'], path).to.equal('same-origin')
        expect(headers['x-content-type-options'], path).to.equal('nosniff')
      }
      for (const destination of ['document', 'iframe', 'script', 'image', 'object', 'serviceworker']) {
        const headers = ['Cookie', admin.cookie, 'Sec-Fetch-Site', 'same-origin', 'Sec-Fetch-Dest', destination]
        expect((await admin.http.request('GET', inAcme, { headers })).status, destination).to.equal(403)
      }
    })

    it('under another host name (DNS rebinding): refused before anything else', async () => {
      await using rebound = openBrowser(kcp.port)
      const headers = (path: string, method = 'GET') =>
        rebound.http.request(method, path, {
          headers: ['Host', 'evil.example', 'Origin', 'https://evil.example', 'X-Kcp-Console', '1'],
        })
      // The test's client sends its own Host first: two names are no name.
      for (const path of ['/console/', inAcme, '/console/api/session'])
        expect((await headers(path)).status).to.equal(400)
      expect(await rawStatus('GET /console/ HTTP/1.1\r\nHost: evil.example\r\n')).to.equal(421)
      expect(await rawStatus('GET /console/ HTTP/1.1\r\nHost: localhost\r\n')).to.be.oneOf([200, 503])
    })
  })

  /** The status of a request of exactly these bytes. */
  const rawStatus = async (head: string, port = kcp.port): Promise<number> => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    socket.write(`${head}Connection: close\r\n\r\n`)
    let text = ''
    for await (const chunk of socket.setEncoding('utf8') as AsyncIterable<string>) text += chunk
    return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
  }

  describe('with credentials that are not the session', () => {
    it('has no use for a certificate or a token below /console', async () => {
      const path = '/console/k8s/clusters/globex/api/v1/secrets'
      // The admin's certificate alone, and together with a tenant's cookie.
      expect((await kcp.admin.http.request('GET', path)).status).to.equal(401)
      const mixed = await kcp.admin.http.request('GET', path, { headers: tenant.headers() })
      expect(mixed.status, mixed.text).to.equal(403)
      await globex.kubectl([
        'create',
        'clusterrolebinding',
        'all',
        '--clusterrole=cluster-admin',
        '--serviceaccount=default:default',
      ])
      const token = (await globex.kubectl(['create', 'token', 'default'])).stdout.trim()
      const bearer = ['Authorization', `Bearer ${token}`]
      await using stranger = openBrowser(kcp.port)
      expect((await stranger.fetch('GET', path, { headers: bearer })).status).to.equal(401)
      expect((await tenant.fetch('GET', path, { headers: bearer })).status).to.equal(403)
      const protocol = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
      const upgrade = await stranger.http.upgrade(`${path}?watch=1`, [
        ...[
          'Upgrade',
          'websocket',
          'Sec-WebSocket-Version',
          '13',
          'Sec-WebSocket-Key',
          randomBytes(16).toString('base64'),
        ],
        ...['Sec-WebSocket-Protocol', `${protocol}, x`, 'Origin', stranger.origin],
      ])
      expect(upgrade.status).to.equal(401)
    })

    it('is nobody with a cookie outside of /console', async () => {
      for (const path of ['/clusters/acme/api/v1/secrets', '/clusters/*/api/v1/secrets', '/metrics', '/api/v1/secrets'])
        expect((await admin.fetch('GET', path)).status, path).to.be.oneOf([401, 403])
    })

    it('cannot choose its session: a sign-in makes a new one and ends the former', async () => {
      await using victim = openBrowser(kcp.port)
      const planted = await signedIn(kcp, 'globex')
      victim.cookie = planted.cookie
      const begun = await victim.signIn({ ticket: await newTicket(kcp, 'acme') })
      expect(begun.json()['realm']).to.deep.equal({ cluster: 'acme' })
      expect(victim.cookie).not.to.equal(planted.cookie)
      expect((await planted.fetch('GET', '/console/api/session')).status).to.equal(401)
      const [cookie = ''] = begun.headers['set-cookie'] ?? []
      expect(cookie).to.match(/^__Host-kcp-console=[\w.-]+; Path=\/; Secure; HttpOnly; SameSite=Strict$/)
      // A second cookie of the same name, planted for another path: neither counts.
      const both = [...tenant.headers(), 'Cookie', admin.cookie]
      expect((await tenant.http.request('GET', '/console/api/session', { headers: both })).status).to.equal(401)
      await planted[Symbol.asyncDispose]()
    })

    it('guesses neither a ticket nor a session', async () => {
      await using guesser = openBrowser(kcp.port)
      const ticket = await newTicket(kcp)
      const guesses = [
        '',
        'x',
        ticket.slice(0, -8),
        `${ticket.slice(0, -8)}AAAAAAAA`,
        `${ticket}x`,
        randomBytes(200).toString('base64url'),
      ]
      for (const guess of guesses) expect((await guesser.signIn({ ticket: guess })).status, guess).to.equal(401)
      for (const value of [ticket, 'x', admin.cookie.slice(0, -8)]) {
        guesser.cookie = value.includes('=') ? value : `__Host-kcp-console=${value}`
        expect((await guesser.fetch('GET', '/console/api/session')).status).to.equal(401)
      }
    })

    it('cannot name another identity', async () => {
      for (const name of ['Impersonate-User', 'Impersonate-Group', 'X-Remote-User', 'X-Kcp-Hop-Address']) {
        const answer = await admin.fetch('GET', inAcme, { headers: [name, 'system:masters'] })
        expect(answer.status, name).to.equal(400)
      }
    })
  })

  describe('by a tenant in a session of its own', () => {
    it('reaches nothing of another logical cluster, by any path', async () => {
      const paths = [
        '/console/k8s/clusters/globex/api/v1/secrets',
        '/console/k8s/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters',
        '/console/k8s/clusters/acme/../globex/api/v1/secrets',
        '/console/k8s/clusters/acme/%2e%2e/globex/api/v1/secrets',
        '/console/k8s/clusters/acme%2f..%2fglobex/api/v1/secrets',
        '/console/k8s/clusters/acme/..%2fglobex/api/v1/secrets',
        '/console/k8s/clusters/%2a/api/v1/secrets',
        '/console/k8s/clusters/acme/clusters/globex/api/v1/secrets',
        '/console/k8s/clusters//globex/api/v1/secrets',
        '/console/k8s//clusters/globex/api/v1/secrets',
        '/console/k8s/clusters/globex%00/api/v1/secrets',
        '/console/../clusters/globex/api/v1/secrets',
        '/console/k8s/../../clusters/globex/api/v1/secrets',
        '/console/%6b8s/clusters/globex/api/v1/secrets',
        '/console//k8s/clusters/globex/api/v1/secrets',
        '/console/k8s/apis/virtual.kcp.dev/v1alpha1/logicalclusters/globex/proxy/api/v1/secrets',
        '/console/k8s/metrics',
        '/console/assets/../../package.json',
        '/console/assets/..%2f..%2fpackage.json',
        '/console/assets/%2e%2e/index.html',
      ]
      for (const path of paths) {
        const { status, text } = await tenant.fetch('GET', path)
        expect(status, path).to.be.oneOf([400, 403, 404])
        expect(text, path).not.to.include('of-globex')
      }
      const all = await tenant.fetch('GET', '/console/k8s/clusters/*/api/v1/secrets')
      expect([all.status, all.text.includes('of-globex')]).to.deep.equal([200, false])
      const write = await tenant.fetch('POST', `/console/k8s/clusters/globex${configMaps}`, { body: {} })
      expect(write.status).to.equal(403)
    })

    it('opens no proxy of a pod, a Service or a node', async () => {
      const paths = ['namespaces/default/pods/x/proxy/', 'namespaces/default/services/x/proxy', 'nodes/x/proxy/metrics']
      for (const path of paths) {
        const { status, text } = await admin.fetch('GET', `/console/k8s/clusters/acme/api/v1/${path}`)
        expect([status, text.includes('a browser reaches no proxy')], path).to.deep.equal([403, true])
      }
    })

    it('gets its text back as data, never as a page', async () => {
      const script = '<script>alert(1)</script>'
      const encoded = encodeURIComponent(script)
      const paths = [
        `${inAcme}/${encoded}`,
        `${inAcme}?labelSelector=${encoded}`,
        `${inAcme}?fieldSelector=${encoded}`,
        `/console/k8s/clusters/acme/${encoded}`,
        `/console/k8s/clusters/${encoded}/api`,
        `/console/${encoded}`,
        `/console/api/${encoded}`,
        `/console/assets/${encoded}`,
        `/console/k8s/clusters/acme/api/v1/namespaces/default/pods/x/log?container=${encoded}`,
      ]
      for (const path of paths) {
        const { status, headers } = await tenant.fetch('GET', path)
        expect(status, path).to.be.at.least(400)
        expect(headers['content-type'], path).to.match(/^(application\/json|text\/plain)/)
        expect(headers['content-security-policy'], path).to.include('sandbox')
        expect(headers['x-content-type-options'], path).to.equal('nosniff')
      }
    })
  })

  describe('by sign-ins', () => {
    it('of bodies that are huge, endless or no JSON: refused unread', async () => {
      await using browser = openBrowser(kcp.port)
      const huge = await browser.fetch('POST', '/console/api/session', { body: { ticket: 'x'.repeat(40_000) } })
      expect(huge.status).to.equal(413)
      const send = (...headers: string[]) =>
        browser.http.request('POST', '/console/api/session', {
          headers: [...browser.headers(), ...headers],
          body: '{}',
        })
      expect((await send('Content-Type', 'application/x-www-form-urlencoded')).status).to.equal(415)
      for (const body of ['{', '[]', '{}', '{"ticket":1}', '{"ticket":"a","token":"b"}', '\u0000']) {
        const answer = await browser.http.request('POST', '/console/api/session', {
          headers: [...browser.headers(), 'Content-Type', 'application/json'],
          body,
        })
        expect(answer.status, body).to.equal(400)
      }
      const chunked = `POST /console/api/session HTTP/1.1\r\nHost: 127.0.0.1:${kcp.port}\r\nOrigin: ${browser.origin}\r\nX-Kcp-Console: 1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`
      expect(await rawStatus(chunked)).to.equal(411)
    })

    it('that never finish: a few at a time, each for ten seconds', async () => {
      const head = `POST /console/api/session HTTP/1.1\r\nHost: 127.0.0.1:${kcp.port}\r\nOrigin: https://127.0.0.1:${kcp.port}\r\nX-Kcp-Console: 1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
      const sockets: TLSSocket[] = []
      const statuses: number[] = []
      for (let i = 0; i < 70; i++) {
        const socket = connectTls({ port: kcp.port, host: '127.0.0.1', rejectUnauthorized: false })
        socket.on('error', () => undefined)
        socket.on('data', (data: Buffer) => statuses.push(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString())?.[1])))
        socket.write(head)
        sockets.push(socket)
      }
      await waitFor(() => Promise.resolve(statuses.length >= 6), {
        what: 'refusals of the 65th and more',
        deadlineMs: 9000,
      })
      expect([...new Set(statuses)]).to.deep.equal([429])
      await waitFor(() => Promise.resolve(statuses.length === 70), { what: 'the end of all', deadlineMs: 30_000 })
      expect(statuses.filter((status) => status === 408)).to.have.length(64)
      for (const socket of sockets) socket.destroy()
      await using browser = openBrowser(kcp.port)
      expect((await browser.signIn({ ticket: await newTicket(kcp) })).status).to.equal(201)
    })
  })

  describe('for what a session leaves behind', () => {
    it('shows the token to nobody: not in the page, the cookie, the audit lines or the log', async () => {
      await acme.kubectl(['create', 'serviceaccount', 'reader'])
      const token = (await acme.kubectl(['create', 'token', 'reader'])).stdout.trim()
      await using browser = openBrowser(kcp.port)
      const begun = await browser.signIn({ token })
      const ticket = await newTicket(kcp)
      await using other = openBrowser(kcp.port)
      await other.signIn({ ticket })
      await other.signIn({ ticket })
      await browser.fetch('GET', inAcme)
      const shown = [
        begun.text,
        JSON.stringify(begun.headers),
        (await browser.fetch('GET', '/console/api/session')).text,
      ]
      const signature = token.split('.')[2] ?? token
      await waitFor(
        () => Promise.resolve(readFileSync(join(folder, 'audit.log'), 'utf8').includes('/console/api/session')),
        {
          what: 'an audit line of the sign-in',
          deadlineMs: 10_000,
        },
      )
      const kept = [readFileSync(join(folder, 'audit.log'), 'utf8'), kcp.process.log()]
      for (const text of [...shown, ...kept])
        for (const secret of [signature, ticket, browser.cookie.split('=')[1] ?? ''])
          if (text !== shown[1]) expect(text.includes(secret)).to.equal(false)
      expect(shown[1]).not.to.include(signature)
    })

    it('ends watches at the sign-out, and the cookie with it', async () => {
      const browser = await signedIn(kcp, 'acme')
      const events = browser.http.request('GET', `${inAcme}?watch=1&resourceVersion=0`, { headers: browser.headers() })
      const socket = await browser.http.upgrade(`${inAcme}?watch=1`, [
        ...[
          'Upgrade',
          'websocket',
          'Sec-WebSocket-Version',
          '13',
          'Sec-WebSocket-Key',
          randomBytes(16).toString('base64'),
        ],
        ...['Origin', browser.origin, 'Cookie', browser.cookie],
      ])
      expect(socket.status).to.equal(101)
      const closed = new Promise((resolve) => socket.socket?.once('close', resolve))
      socket.socket?.resume()
      await new Promise((resolve) => setTimeout(resolve, 300))
      const out = await browser.fetch('DELETE', '/console/api/session')
      expect([out.status, out.headers['set-cookie']?.[0]?.includes('Max-Age=0')]).to.deep.equal([200, true])
      expect((await events).status).to.equal(200)
      await closed
      expect((await browser.fetch('GET', '/console/api/session')).status).to.equal(401)
      await browser[Symbol.asyncDispose]()
    })
  })

  it('is served under the name of an Ingress with --console-origin, and takes its origin', async () => {
    await using behind = await startInstance(['--console-origin', 'https://console.example.com'])
    const status = (origin: string): Promise<number> => {
      const head = ['POST /console/api/session HTTP/1.1', 'Host: console.example.com', `Origin: ${origin}`]
      const body = ['X-Kcp-Console: 1', 'Content-Type: application/json', 'Content-Length: 0']
      return rawStatus(`${[...head, ...body].join('\r\n')}\r\n`, behind.port)
    }
    // The body is no sign-in, which is found out after the origin was accepted.
    expect(await status('https://console.example.com')).to.equal(400)
    expect(await status('https://console.example.com:8443')).to.equal(403)
    expect(await status('http://console.example.com')).to.equal(403)
  })

  it('is not there with --no-console', async () => {
    await using quiet = await startInstance(['--no-console'])
    await using http = openRawClient({ port: quiet.port })
    for (const path of ['/console/', '/console', '/console/api/session'])
      expect((await http.request('GET', path)).status).to.equal(403)
  })
})
