import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { readLine } from './read-line.ts'
import { answerLine, requestLine, tryParseAnswer, tryParseRequest } from './wire.ts'

const target = { namespace: 'acmeacme22-shop', service: 'web', port: 'http' }

describe('the lines between gateways', () => {
  it('parse back', () => {
    expect(tryParseRequest(requestLine(target).trimEnd())).to.deep.equal(target)
    expect(tryParseAnswer(answerLine().trimEnd())).to.deep.equal({ ok: true })
    expect(tryParseAnswer(answerLine('busy').trimEnd())).to.deep.equal({ ok: false, reason: 'busy' })
  })

  for (const line of [
    '',
    '{',
    'null',
    '[]',
    '"x"',
    '{"namespace":"a","service":"b"}',
    '{"namespace":"","service":"b","port":""}',
  ])
    it(`are refused as a request: ${line}`, () => expect(tryParseRequest(line)).to.equal(undefined))

  for (const line of ['', 'OK', 'no', 'no idea', 'ok '])
    it(`are refused as an answer: "${line}"`, () => expect(tryParseAnswer(line)).to.equal(undefined))

  it('are read from any pieces, and what follows is left', async () => {
    const stream = new PassThrough()
    const line = readLine(stream, { maxBytes: 16, timeoutMs: 1000 })
    for (const piece of ['a', 'bc\nre', 'st']) stream.write(piece)
    expect(await line).to.equal('abc')
    stream.end()
    expect(Buffer.concat((await stream.toArray()) as Buffer[]).toString()).to.equal('rest')
  })

  for (const { title, write, message } of [
    { title: 'too long', write: (stream: PassThrough) => stream.write('x'.repeat(20)), message: 'a line is too long' },
    {
      title: 'too long by its end',
      write: (stream: PassThrough) => stream.write(`${'x'.repeat(16)}\n`),
      message: 'a line is too long',
    },
    { title: 'late', write: (stream: PassThrough) => stream.write('x'), message: 'no line came in time' },
    {
      title: 'cut off',
      write: (stream: PassThrough) => stream.end('x'),
      message: 'the connection ended before a line',
    },
  ])
    it(`are refused when ${title}`, async () => {
      const stream = new PassThrough()
      const line = readLine(stream, { maxBytes: 16, timeoutMs: 50 })
      write(stream)
      expect(await line.catch((error: unknown) => (error as Error).message)).to.equal(message)
    })
})
