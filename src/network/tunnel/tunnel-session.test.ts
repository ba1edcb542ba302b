import { once } from 'node:events'
import { connect, performServerHandshake, type ClientHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type Duplex, duplexPair } from 'node:stream'
import { expect } from 'chai'
import { asSocket, sessionSettings } from './index.ts'

describe('a connection in a tunnel', () => {
  let session: ClientHttp2Session
  let near: Duplex
  let far: Duplex

  beforeEach(async () => {
    const [ours, agents] = duplexPair()
    const agent = performServerHandshake(agents, sessionSettings)
    session = connect('http://agent', { createConnection: () => ours, ...sessionSettings })
    near = asSocket(session.request({ ':method': 'CONNECT', ':authority': 'api' }, { endStream: false }))
    const [stream] = (await once(agent, 'stream')) as [ServerHttp2Stream]
    stream.respond({ ':status': 200 })
    far = asSocket(stream)
    await once(near, 'response')
  })
  afterEach(() => session.destroy())

  // As node:http writes an answer whose headers and body are there at once.
  const text = 'HTTP/1.1 503 Service Unavailable\r\n'.padEnd(1000, 'x')
  for (const { title, chunks } of [
    { title: 'a text and nothing', chunks: [text, ''] },
    { title: 'a text, bytes and nothing', chunks: [text, Buffer.from('bytes'), ''] },
    { title: 'nothing between two texts', chunks: [text, '', 'more'] },
  ])
    for (const side of ['installation', 'agent'] as const)
      it(`carries ${title}, which the ${side} writes at once, unchanged`, async () => {
        const [from, to] = side === 'agent' ? [far, near] : [near, far]
        const sent = chunks.map(String).join('')
        const written = Promise.withResolvers<undefined>()
        from.cork()
        for (const [i, chunk] of chunks.entries())
          from.write(chunk, 'latin1', () => i === chunks.length - 1 && written.resolve(undefined))
        from.uncork()
        let got = ''
        to.setEncoding('latin1').on('data', (part: string) => (got += part))
        while (got.length < sent.length) await once(to, 'data')
        expect(got).to.equal(sent)
        await written.promise
      })

  it('ends a write of nothing', async () => {
    far.cork()
    far.write('')
    const written = Promise.withResolvers<undefined>()
    far.write('', () => written.resolve(undefined))
    far.uncork()
    await written.promise
    far.end('end')
    expect((await near.toArray()).map(String).join('')).to.equal('end')
  })
})
