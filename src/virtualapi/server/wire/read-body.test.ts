import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect } from 'chai'
import { maxBodyBytes } from '#virtualapi/codec/read-object.ts'
import { readBody } from './read-body.ts'

/**
 * Sends a request as these bytes, ends the connection if told to, and resolves with what the server read, or why not.
 */
async function read(bytes: readonly string[], { breaksOff = false } = {}): Promise<string> {
  const outcome = Promise.withResolvers<string>()
  await using server = createServer((request, response) => {
    readBody({ rawHeaders: request.rawHeaders, body: request })
      .then(
        (body) => outcome.resolve(Buffer.from(body).toString()),
        (error: unknown) => outcome.resolve((error as Error).message),
      )
      .finally(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => undefined)
  for (const part of bytes) socket.write(part)
  if (breaksOff) socket.end()
  const said = await outcome.promise
  socket.destroy()
  return said
}

const head = (...headers: string[]): string => ['POST / HTTP/1.1', 'host: a', ...headers, '', ''].join('\r\n')
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

describe('readBody', () => {
  it('joins what arrives in parts', async () => {
    expect(await read([head('content-length: 6'), 'abc', 'def'])).to.equal('abcdef')
  })

  it('reads a body that is empty', async () => {
    expect(await read([head('content-length: 0')])).to.equal('')
  })

  it('refuses a body of unknown length above the limit', async () => {
    const parts = Array.from({ length: maxBodyBytes / 65_536 + 1 }, () => chunk('x'.repeat(65_536)))
    expect(await read([head('transfer-encoding: chunked'), ...parts])).to.include('Request entity too large')
  })

  it('refuses a body whose client breaks off', async () => {
    expect(await read([head('content-length: 6'), 'abc'], { breaksOff: true })).to.include('the client broke off')
  })
})
