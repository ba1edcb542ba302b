// Bodies of unknown length count as large until they have arrived.
import { expect } from 'chai'
import { constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { startServedApi, untilTrue, type ServedApi, type ServedTenant } from './served-api.ts'

const { NGHTTP2_CANCEL } = constants

describe('bodies of unknown length over HTTP/2', () => {
  let served: ServedApi
  let acme: ServedTenant
  let session: ClientHttp2Session
  let path: string

  before(async () => {
    served = await startServedApi({ limits: { largeRequests: 1, waitingLarge: 0 } })
    acme = await served.tenant('acme')
    session = acme.http2()
    path = `${acme.base}/api/v1/namespaces/default/configmaps`
  })
  after(() => served[Symbol.asyncDispose]())

  const begin = (method: string, where: string, headers: Record<string, string> = {}): ClientHttp2Stream => {
    const all = { ':method': method, ':path': where, 'content-type': 'application/json', ...headers }
    const stream = session.request(all, { endStream: false })
    stream.on('error', () => undefined)
    return stream
  }
  const answered = (stream: ClientHttp2Stream): Promise<number> =>
    new Promise((resolve, reject) => {
      stream.once('response', ({ ':status': status }) => {
        stream.resume()
        resolve(Number(status))
      })
      stream.once('close', () => reject(new Error('the stream closed without an answer')))
    })
  const post = (headers: Record<string, string> = {}): Promise<number> => {
    const stream = begin('POST', `${path}?dryRun=All`, headers)
    const status = answered(stream)
    stream.end(body)
    return status
  }
  const body = '{"metadata":{"name":"m"}}'

  it('are queued like large ones; small ones, and requests without a body, are not', async () => {
    expect(await post()).to.equal(201)
    const open = begin('POST', path)
    await untilTrue(async () => (await post()) === 429, 'the only place is taken')
    expect(await post({ 'content-length': String(body.length) })).to.equal(201)
    const names = [`${path}/none`, `${path}?labelSelector=a%3Db`]
    for (const name of names) {
      const stream = session.request({ ':method': 'DELETE', ':path': name })
      expect(await answered(stream)).to.be.oneOf([200, 404])
    }
    // A GET that leaves its stream open sends no body either.
    const read = begin('GET', path)
    expect(await answered(read)).to.equal(200)
    read.end()
    open.close(NGHTTP2_CANCEL)
    await untilTrue(async () => (await post()) === 201, 'the place is free again')
  })
})
