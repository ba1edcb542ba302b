// Clients that harm others or themselves: partial requests, selectors that hide objects, upgrades, floods.
import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { openPki } from '#virtualapi/index.ts'
import { startServedApi, untilTrue, type ServedApi, type ServedTenant } from './served-api.ts'

const configMaps = '/clusters/acme/api/v1/namespaces/default/configmaps'
const secrets = '/clusters/acme/api/v1/namespaces/default/secrets'
const rbac = '/clusters/acme/apis/rbac.authorization.k8s.io/v1/namespaces/default'

describe('hostile and broken clients', function () {
  this.timeout(60_000)
  let served: ServedApi
  let acme: ServedTenant

  before(async () => {
    served = await startServedApi({
      firstRequestMs: 1000,
      limits: { requests: 40, watches: 60, responseBytes: 30_000_000 },
      requestTimeoutMs: 1000,
    })
    acme = await served.tenant('acme')
    expect((await acme.request('GET', '/clusters/acme/api/v1/namespaces/default')).status).to.equal(200)
  })
  after(() => served[Symbol.asyncDispose]())

  const create = async (path: string, body: object): Promise<void> => {
    const answer = await acme.request('POST', path, { body })
    expect(answer.status, answer.text).to.equal(201)
  }

  describe('a request aborted in its body', () => {
    const request = (method: string, path: string, type: string): Record<string, string> => ({
      ':method': method,
      ':scheme': 'https',
      ':authority': 'kcp',
      ':path': path,
      'content-type': type,
    })
    /** Sends part of the body, aborts, and waits until the server has handled it. */
    async function brokenOff(
      how: 'reset at once' | 'reset' | 'end',
      headers: Record<string, string>,
      part: string,
    ): Promise<void> {
      const socket = await acme.socket({ ALPNProtocols: ['h2'] })
      socket.resume()
      const reset = frame(frameTypes.reset, 0, 1, Buffer.from([0, 0, 0, 8]))
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.write(
        Buffer.concat([
          Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
          frame(frameTypes.settings, 0, 0, Buffer.alloc(0)),
          frame(frameTypes.headers, endHeaders, 1, literalHeaders(headers)),
          frame(frameTypes.data, 0, 1, Buffer.from(part)),
          ...(how === 'reset at once' ? [reset] : []),
        ]),
      )
      // Another connection gets an answer only after the server has read the partial body.
      for (let i = 0; i < 5; i++) await acme.request('GET', configMaps)
      if (how === 'reset') socket.write(reset)
      for (let i = 0; i < 20; i++) await acme.request('GET', configMaps)
      socket.destroy()
      await closed
      for (let i = 0; i < 20; i++) await acme.request('GET', configMaps)
    }
    const ways = [
      { title: 'by a reset in the same packet', how: 'reset at once' },
      { title: 'by a reset of the stream', how: 'reset' },
      { title: 'by the end of the connection', how: 'end' },
    ] as const
    for (const { title, how } of ways) {
      it(`${title} deletes nothing: the preconditions had not arrived`, async () => {
        await create(configMaps, { metadata: { name: 'precious' } })
        await brokenOff(how, request('DELETE', `${configMaps}/precious`, 'application/json'), '')
        expect((await acme.request('GET', `${configMaps}/precious`)).status).to.equal(200)
        await acme.request('DELETE', `${configMaps}/precious`)
      })

      it(`${title} creates nothing from a partial YAML document`, async () => {
        const half = 'metadata:\n  name: half\ndata:\n  a: b\n'
        await brokenOff(how, request('POST', configMaps, 'application/yaml'), half)
        expect((await acme.request('GET', `${configMaps}/half`)).status).to.equal(404)
      })
    }
  })

  describe('a client', () => {
    it('that sends its body slowly is cut off at the usual deadline, and its slot is freed', async () => {
      const sockets = await Promise.all(Array.from({ length: 40 }, () => acme.socket()))
      const answers = sockets.map(
        (socket) =>
          new Promise<string>((resolve) => {
            socket.once('data', (data: Buffer) => resolve(data.toString().slice(9, 12)))
            const head = `POST ${configMaps} HTTP/1.1\r\nHost: kcp\r\nContent-Type: application/json\r\n`
            socket.write(`${head}Content-Length: 1000\r\n\r\n{`)
          }),
      )
      expect(new Set(await Promise.all(answers))).to.deep.equal(new Set(['504']))
      expect((await acme.request('GET', configMaps)).status).to.equal(200)
      for (const socket of sockets) socket.destroy()
    })

    it('that has not finished its request is disconnected, wherever it stopped; an idle one after a request is not', async () => {
      const idle = await acme.socket()
      const answered = new Promise((resolve) => idle.once('data', resolve))
      idle.write('GET /version HTTP/1.1\r\nHost: kcp\r\n\r\n')
      await answered
      const session = acme.http2()
      const stream = session.request({ ':path': '/version' })
      stream.resume()
      await new Promise((resolve) => stream.once('close', resolve))
      const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
      const silent: Record<string, Socket> = {
        'before the handshake': connectTcp(served.port, '127.0.0.1'),
        'after the handshake': await acme.socket(),
        'in the head': await acme.socket(),
        'before the preface of HTTP/2': await acme.socket({ ALPNProtocols: ['h2'] }),
        'after the preface of HTTP/2': await acme.socket({ ALPNProtocols: ['h2'] }),
      }
      silent['in the head']?.write('GET / HTTP/1.1\r\nHost: kc')
      silent['after the preface of HTTP/2']?.write(preface)
      await Promise.all(
        Object.entries(silent).map(([where, socket]) => {
          socket.on('error', () => undefined)
          socket.resume()
          return untilTrue(() => socket.destroyed, `cut off ${where}`)
        }),
      )
      expect(idle.destroyed).to.equal(false)
      expect(session.destroyed).to.equal(false)
      session.destroy()
      idle.destroy()
    })

    for (const { title, fields, answer } of [
      { title: 'in one frame of 200 kB are read', fields: longFields(4, 50_000), answer: /"gitVersion"/ },
      {
        title: 'of 300 kB in all get 431',
        fields: repeatedField(3900, 77),
        answer: /"RequestHeaderFieldsTooLarge".*431/,
      },
    ])
      it(`may go on over HTTP/2: headers ${title}`, async () => {
        const socket = await acme.socket({ ALPNProtocols: ['h2'] })
        let heard = ''
        socket.on('data', (data: Buffer) => (heard += data.toString('latin1')))
        const head = { ':method': 'GET', ':scheme': 'https', ':authority': 'kcp', ':path': '/version' }
        const ask = (stream: number, more: Buffer): Buffer =>
          frame(frameTypes.headers, endHeaders | endStream, stream, Buffer.concat([literalHeaders(head), more]))
        socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
        socket.write(frame(frameTypes.settings, 0, 0, Buffer.alloc(0)))
        await untilTrue(() => heard !== '', 'the settings of the server have arrived')
        socket.write(Buffer.concat([frame(frameTypes.settings, isAck, 0, Buffer.alloc(0)), ask(1, fields)]))
        await untilTrue(() => answer.test(heard), 'the large request is answered')
        heard = ''
        socket.write(ask(3, Buffer.alloc(0)))
        await untilTrue(() => heard.includes('"gitVersion"'), 'the next request of the connection is answered')
        socket.destroy()
      })

    it('that reads large answers slowly gets no more of them than its budget, and the full budget again after it leaves', async () => {
      const big = { metadata: { name: 'big' }, data: { a: 'x'.repeat(1_000_000) } }
      const one = '/clusters/greta/api/v1/namespaces/default/configmaps'
      const greta = await served.tenant('greta')
      // Lists are streamed in chunks and count for a fraction: 24 MB, of 30 MB.
      for (let i = 0; i < 24; i++) {
        const { status } = await greta.request('POST', one, { body: { ...big, metadata: { name: `big-${i}` } } })
        expect(status).to.equal(201)
      }
      const sockets = await Promise.all(Array.from({ length: 12 }, () => greta.socket()))
      const codes = await Promise.all(
        sockets.map((socket) => {
          const first = new Promise<string>((resolve) => {
            socket.once('data', (data: Buffer) => {
              socket.pause()
              resolve(data.toString('latin1').slice(9, 12))
            })
          })
          socket.write(`GET ${one} HTTP/1.1\r\nHost: kcp\r\n\r\n`)
          return first
        }),
      )
      expect(codes.filter((code) => code === '429').length, codes.join(' ')).to.be.greaterThan(5)
      expect(codes).to.include('200')
      expect((await acme.request('GET', configMaps)).status).to.equal(200)
      for (const socket of sockets) socket.destroy()
      await untilTrue(async () => (await greta.request('GET', one)).status === 200, 'there is room again')
    })

    it('over its budget gets a Retry-After, while others are served', async () => {
      const bob = await served.tenant('bob')
      const sockets = await Promise.all(Array.from({ length: 41 }, () => acme.socket()))
      const answers = sockets.map(
        (socket) =>
          new Promise<string>((resolve) => {
            socket.once('data', (data: Buffer) => resolve(data.toString()))
            socket.write(`POST ${configMaps} HTTP/1.1\r\nHost: kcp\r\nContent-Length: 1000\r\n\r\n{`)
          }),
      )
      const refused = await Promise.race(answers)
      expect(refused).to.match(/^HTTP\/1.1 429 /)
      expect(refused).to.match(/retry-after: \d/i)
      expect((await bob.request('GET', '/clusters/bob/api/v1/namespaces')).status).to.equal(200)
      await Promise.all(answers)
      for (const socket of sockets) socket.destroy()
    })
  })

  it('that open watches and leave at once, however early, leave no slot taken and no watch open', async () => {
    const before = served.api.watchCache.usage().watchers
    for (let round = 0; round < 6; round++) {
      const session = acme.http2()
      await Promise.all(
        Array.from({ length: 50 }, async (_, i) => {
          const watch = `${configMaps}?watch=1&round=${round}`
          if (i % 2 === 0) {
            const stream = session.request({ ':path': watch })
            stream.on('error', () => undefined)
            if (i % 4 === 0) stream.close(8)
            await new Promise((resolve) => stream.once(i % 4 === 0 ? 'close' : 'response', resolve))
            stream.close(8)
          } else {
            const socket = await acme.socket()
            socket.write(`GET ${watch} HTTP/1.1\r\nHost: kcp\r\n\r\n`)
            if (i % 4 === 1) await new Promise((resolve) => socket.once('data', resolve))
            socket.destroy()
          }
        }),
      )
      session.destroy()
    }
    await untilTrue(() => served.api.watchCache.usage().watchers === before, 'all watches are closed')
    const gone = new AbortController()
    const open = await Promise.all(
      Array.from({ length: 60 }, () => acme.open('GET', `${configMaps}?watch=1`, { signal: gone.signal })),
    )
    for (const response of open) response.on('error', () => undefined)
    expect(new Set(open.map(({ statusCode }) => statusCode))).to.deep.equal(new Set([200]))
    expect((await acme.request('GET', `${configMaps}?watch=1`)).status).to.equal(429)
    gone.abort()
    await untilTrue(() => served.api.watchCache.usage().watchers === before, 'all watches are closed')
  })

  it('that send an unknown method, path or media type get a Status', async () => {
    for (const [head, body, code] of [
      [`PROPFIND ${configMaps} HTTP/1.1`, '', 405],
      [`TRACE ${configMaps} HTTP/1.1`, '', 405],
      // A client certificate leads to its logical cluster where the path names none.
      ['PROPFIND /nothing HTTP/1.1', '', 404],
      [`POST ${configMaps} HTTP/1.1\r\nContent-Type: ;;;`, '{}', 422],
    ] as const) {
      const socket = await acme.socket()
      const answer = new Promise<string>((resolve) => socket.once('data', (data: Buffer) => resolve(data.toString())))
      socket.write(`${head}\r\nHost: kcp\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      const text = await answer
      expect(text.slice(9, 12), `${head}: ${text}`).to.equal(String(code))
      expect(text).to.include(code === 404 ? '404 page not found' : '"kind":"Status"')
      socket.destroy()
    }
  })

  it('may send impersonation extras named like Object.prototype properties', async () => {
    for (const key of ['__proto__', 'constructor', 'tostring']) {
      const headers = { 'impersonate-user': 'eve', [`impersonate-extra-${key}`]: 'x' }
      const path = '/clusters/acme/apis/authentication.k8s.io/v1/selfsubjectreviews'
      const answer = await acme.request('POST', path, { headers, body: {} })
      expect(answer.status, answer.text).to.equal(201)
      expect(answer.text).to.include(`"${key}":["x"]`)
    }
  })

  describe('forged identity', () => {
    it('certificates of another installation are refused, for this logical cluster and for everything', async () => {
      const dir = mkdtempSync(join(tmpdir(), 'kcp-other-'))
      try {
        const other = await openPki(dir)
        for (const realm of [acme.id, 'installation'] as const) {
          const name = { commonName: 'admin', organizations: ['system:masters'], realm, days: 1 }
          const { certificate: cert, key } = await other.issueClientCertificate(name)
          const socket = connectTls({ host: '127.0.0.1', port: served.port, cert, key, rejectUnauthorized: false })
          socket.on('error', () => undefined)
          expect(await said(socket, `GET ${secrets} HTTP/1.1\r\nHost: kcp\r\n\r\n`)).to.match(/^HTTP\/1.1 401 /)
        }
      } finally {
        rmSync(dir, { recursive: true, force: true })
      }
    })

    for (const [title, text, code] of [
      [
        'both lengths',
        `POST ${configMaps} HTTP/1.1\r\nHost: k\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n`,
        400,
      ],
      ['two lengths', `POST ${configMaps} HTTP/1.1\r\nHost: k\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n`, 400],
      [
        'a space before the colon of Transfer-Encoding',
        `POST ${configMaps} HTTP/1.1\r\nHost: k\r\nTransfer-Encoding : chunked\r\n\r\n`,
        400,
      ],
      ['an absolute form', 'GET https://kcp/clusters/bob/api HTTP/1.1\r\nHost: k\r\n\r\n', 401],
      [
        'an upgrade on a path without upgrades',
        `GET ${configMaps} HTTP/1.1\r\nHost: k\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`,
        400,
      ],
      [
        'an upgrade of another logical cluster',
        'GET /clusters/root/api/v1/namespaces/default/pods/x/exec HTTP/1.1\r\nHost: k\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
        401,
      ],
      ['60,000 headers', `GET ${configMaps} HTTP/1.1\r\nHost: k\r\n${'X-A: b\r\n'.repeat(60_000)}\r\n`, 431],
      ['a URL of 80 KB', `GET ${configMaps}?${'a=b&'.repeat(20_000)} HTTP/1.1\r\nHost: k\r\n\r\n`, 400],
    ] as const)
      it(`${title}: answers ${code} exactly once`, async () => {
        const socket = await acme.socket()
        const answer = await said(socket, text)
        expect(answer.slice(9, 12), answer.slice(0, 500)).to.equal(String(code))
        expect(answer.match(/HTTP\/1.1 /g)).to.have.length(1)
      })

    it('CONNECT tunnels are refused', async () => {
      const socket = await acme.socket()
      expect(await said(socket, 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: k\r\n\r\n')).to.equal('')
    })

    it('uid, placement and the member of a pod can only be set by the installation, not by a tenant', async () => {
      const annotations = { 'kcp.dev/member': 'somewhere', 'kcp.dev/placed-on': 'elsewhere', mine: 'yes' }
      const headers = { 'kcp-keep-uid': 'true' }
      const containers = [{ name: 'c', image: 'i' }]
      const pod = { metadata: { name: 'forged', uid: 'of-my-choice', annotations }, spec: { containers } }
      const pods = configMaps.replace('configmaps', 'pods')
      const created = await acme.request('POST', pods, { headers, body: pod })
      expect(created.status, created.text).to.equal(201)
      const { metadata } = JSON.parse(created.text) as { metadata: { uid: string; annotations: object } }
      expect(metadata.uid).not.to.equal('of-my-choice')
      expect(metadata.annotations).to.deep.equal({ mine: 'yes' })
      const patched = await acme.request('PATCH', `${pods}/forged`, {
        headers: { 'content-type': 'application/merge-patch+json' },
        body: { metadata: { annotations } },
      })
      expect((JSON.parse(patched.text) as { metadata: { annotations: object } }).metadata.annotations).to.deep.equal({
        mine: 'yes',
      })
      const { status, text } = await acme.request('GET', `${pods}/forged/log`)
      expect({ status, text }).to.deep.equal({ status: 204, text: '' })
      expect((await acme.request('DELETE', '/clusters/acme')).status).to.equal(403)
    })
  })

  describe('a user who may list one secret by name', () => {
    let eve: ServedTenant
    before(async () => {
      for (const name of ['hers', 'theirs'])
        await create(secrets, { metadata: { name }, stringData: { key: `${name}-treasure` } })
      const rules = [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['hers'], verbs: ['list', 'watch'] }]
      await create(`${rbac}/roles`, { metadata: { name: 'hers' }, rules })
      await create(`${rbac}/rolebindings`, {
        metadata: { name: 'hers' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'hers' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'eve' }],
      })
      eve = await served.user(acme, 'eve')
    })

    for (const [selector, code] of [
      ['metadata.name=hers', 200],
      ['metadata.name==hers', 200],
      ['type=Opaque,metadata.name=hers', 200],
      ['metadata.name=theirs', 403],
      ['metadata.name!=hers', 403],
      ['type!=\\,metadata.name=hers', 403],
      ['type!=\\,metadata.name\\=hers', 403],
      ['type!=a\\,metadata.name=hers,type!=b', 403],
      ['metadata.name=hers\\,x', 403],
      ['', 403],
    ] as const)
      it(`gets ${code} for the selector '${selector}'`, async () => {
        const query = `fieldSelector=${encodeURIComponent(selector)}`
        const list = await eve.request('GET', `${secrets}?${query}`)
        expect(list.status, list.text).to.equal(code)
        const watch = await eve.request('GET', `${secrets}?${query}&watch=1&timeoutSeconds=1`)
        expect(watch.status, watch.text).to.equal(code)
        expect(list.text + watch.text).not.to.include('theirs-treasure')
        expect(list.text + watch.text).not.to.include(Buffer.from('theirs-treasure').toString('base64'))
      })
  })
})

// HTTP/2 frames written by hand: Node's own client ends a stream properly before it resets it.
const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4 } as const
const endHeaders = 4
const endStream = 1
const isAck = 1

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** HPACK without its tables: every field is a literal. */
function literalHeaders(headers: Record<string, string>): Buffer {
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), ...hpackText(name), ...hpackText(value)]),
  )
}

/** A length of HPACK (RFC 7541, 5.1) and the text. */
function hpackText(value: string): Buffer[] {
  const length = [Math.min(value.length, 127)]
  if (value.length >= 127) {
    let rest = value.length - 127
    for (; rest >= 128; rest >>>= 7) length.push((rest & 127) | 128)
    length.push(rest)
  }
  return [Buffer.from(length), Buffer.from(value, 'latin1')]
}

function longFields(count: number, length: number): Buffer {
  const fields = Array.from({ length: count }, (_, i) => [`x-${i}`, 'v'.repeat(length)] as const)
  return literalHeaders(Object.fromEntries(fields))
}

/** One field that goes to the table of HPACK, and references to it: much is received of few bytes. */
function repeatedField(length: number, times: number): Buffer {
  return Buffer.concat([
    Buffer.from([0x40]),
    ...hpackText('x-a'),
    ...hpackText('v'.repeat(length)),
    Buffer.alloc(times - 1, 0xbe),
  ])
}

/** The server's output within one second, or until it closes the connection. */
async function said(socket: TLSSocket, text: string): Promise<string> {
  let heard = ''
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, 1000)
    socket.on('data', (data: Buffer) => {
      heard += data.toString()
    })
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
  socket.write(text, 'latin1')
  await over
  socket.destroy()
  return heard
}
