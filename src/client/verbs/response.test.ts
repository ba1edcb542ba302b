import { expect } from 'chai'
import { linesOf } from './response.ts'

async function split(chunks: (string | Uint8Array)[], maxBytes = 100): Promise<string[]> {
  async function* body(): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) yield Buffer.from(chunk as string)
  }
  const lines: string[] = []
  for await (const line of linesOf(body(), { maxBytes })) lines.push(line)
  return lines
}

describe('lines of a watch', () => {
  const euro = Buffer.from('"€"\n')
  for (const { title, chunks, lines } of [
    { title: 'several in one chunk', chunks: ['a\nb\n'], lines: ['a', 'b'] },
    { title: 'one over several chunks', chunks: ['a', 'b', 'c\n'], lines: ['abc'] },
    { title: 'a line end in a chunk of its own', chunks: ['a', '\n', 'b\n'], lines: ['a', 'b'] },
    { title: 'an unfinished last line, dropped', chunks: ['a\nb'], lines: ['a'] },
    { title: 'empty lines, dropped', chunks: ['\n\na\n'], lines: ['a'] },
    {
      title: 'U+2028 and \\r inside a line, which do not end it',
      chunks: ['a\u2028b\rc\u2029d\n'],
      lines: ['a\u2028b\rc\u2029d'],
    },
    { title: 'a character split over two chunks', chunks: [euro.subarray(0, 2), euro.subarray(2)], lines: ['"€"'] },
  ]) {
    it(`understands ${title}`, async () => expect(await split(chunks)).to.deep.equal(lines))
  }
  for (const { title, chunks } of [
    { title: 'that is finished', chunks: ['aaaaaa\n'] },
    { title: 'that never ends', chunks: ['aaa', 'aaa', 'aaa'] },
  ]) {
    it(`refuses a line longer than the limit ${title}`, async () => {
      const error = await split(chunks, 5).catch((error: unknown) => error)
      expect(error).to.include({ reason: 'RequestEntityTooLarge' })
    })
  }
})
