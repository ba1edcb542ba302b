// A long list is sent in chunks whose buffers are reused: the bytes of concurrent lists must never mix.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type ClientHttp2Session } from 'node:http2'
import type { Readable } from 'node:stream'
import { Agent, request as httpsRequest } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { parse } from 'yaml'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const collection = '/api/v1/namespaces/default/configmaps'
const objects = 2500

interface Opened {
  readonly status: number
  readonly length: string | undefined
  readonly body: Readable
  readonly drop: () => void
}

interface Identity {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

function identityOf(kubeconfig: string): Identity {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as {
    clusters: [{ cluster: { 'certificate-authority-data': string } }]
    users: [{ user: { 'client-certificate-data': string; 'client-key-data': string } }]
  }
  const decoded = (text: string): Buffer => Buffer.from(text, 'base64')
  const { user } = users[0]
  return {
    ca: decoded(clusters[0].cluster['certificate-authority-data']),
    cert: decoded(user['client-certificate-data']),
    key: decoded(user['client-key-data']),
  }
}

describe('long lists', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let session: ClientHttp2Session
  let agent: Agent
  let expected: string
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    let next = 0
    const fill = async (): Promise<void> => {
      while (next < objects) {
        const name = `c-${next++}`
        const body = { metadata: { name }, data: { text: name.repeat(60) } }
        expect((await acme.http.request('POST', acme.base + collection, { body })).status).to.equal(201)
      }
    }
    await Promise.all(Array.from({ length: 16 }, fill))
    const identity = identityOf(acme.kubeconfig)
    session = connect(`https://127.0.0.1:${kcp.port}`, identity)
    agent = new Agent({ keepAlive: true, ...identity })
    expected = (await acme.http.request('GET', acme.base + collection)).text
  })
  after(async () => {
    session.destroy()
    agent.destroy()
    await kcp[Symbol.asyncDispose]()
  })

  const overHttp1 = async (): Promise<Opened> => {
    const outgoing = httpsRequest({ host: '127.0.0.1', port: kcp.port, path: acme.base + collection, agent })
    outgoing.end()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const drop = (): void => void response.destroy()
    return { status: response.statusCode ?? 0, length: response.headers['content-length'], body: response, drop }
  }
  const overHttp2 = async (): Promise<Opened> => {
    const stream = session.request({ ':path': acme.base + collection })
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    const length = headers['content-length']
    const drop = (): void => stream.close(8)
    return {
      status: Number(headers[':status']),
      length: typeof length === 'string' ? length : undefined,
      body: stream,
      drop,
    }
  }
  const textOf = async (body: Readable, { slowly }: { slowly: boolean }): Promise<string> => {
    const chunks: Buffer[] = []
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      if (slowly && chunks.length % 4 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    return Buffer.concat(chunks).toString()
  }

  it('contain every object once, and end with a newline', () => {
    const { items } = JSON.parse(expected) as { items: { metadata: { name: string }; data: { text: string } }[] }
    expect(items.filter(({ metadata: { name }, data }) => data.text === name.repeat(60))).to.have.length(objects)
    expect(new Set(items.map(({ metadata }) => metadata.name))).to.have.property('size', items.length)
    expect(expected.endsWith('}\n')).to.equal(true)
  })

  for (const [title, open] of [
    ['HTTP/1.1', overHttp1],
    ['HTTP/2', overHttp2],
  ] as const)
    it(`are equal for all clients over ${title}: many at once, slow ones, and aborted ones`, async () => {
      for (let round = 0; round < 3; round++)
        await Promise.all(
          Array.from({ length: 12 }, async (_, i) => {
            const { status, length, body, drop } = await open()
            expect(status).to.equal(200)
            expect(length).to.equal(String(Buffer.byteLength(expected)))
            if (i % 4 === 3) {
              body.on('error', () => undefined)
              await once(body, 'readable')
              drop()
              return
            }
            const text = await textOf(body, { slowly: i % 2 === 0 })
            expect(text === expected, `list ${i} of round ${round}`).to.equal(true)
          }),
        )
    })
})
