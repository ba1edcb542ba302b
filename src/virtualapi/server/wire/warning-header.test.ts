import { expect } from 'chai'
import { warningHeader } from './warning-header.ts'

describe('the Warning header', () => {
  for (const { title, warnings, value } of [
    { title: 'is absent without warnings', warnings: [], value: undefined },
    { title: 'has each text once', warnings: ['b', 'a', 'b'], value: '299 - "b", 299 - "a"' },
    { title: 'escapes quotes and backslashes', warnings: ['a "b" \\'], value: '299 - "a \\"b\\" \\\\"' },
    { title: 'leaves out empty texts and control characters', warnings: ['', 'a\nb', 'c'], value: '299 - "c"' },
    { title: 'is UTF-8', warnings: ['ä'], value: '299 - "Ã¤"' },
    {
      title: 'keeps long texts if they fit',
      warnings: ['x'.repeat(4000), 'y'.repeat(96)],
      value: `299 - "${'x'.repeat(4000)}", 299 - "${'y'.repeat(96)}"`,
    },
    {
      title: 'truncates all texts if they do not fit',
      warnings: ['x'.repeat(4000), 'y'.repeat(97), '😀'.repeat(300)],
      value: `299 - "${'x'.repeat(256)}", 299 - "${'y'.repeat(97)}", 299 - "${Buffer.from('😀'.repeat(256)).toString('latin1')}"`,
    },
  ])
    it(title, () => expect(warningHeader(warnings)).to.equal(value))

  it('is bounded in length', () => {
    const warnings = Array.from({ length: 1000 }, (_, index) => `${index} ${'x'.repeat(300)}`)
    expect(warningHeader(warnings)?.split('299 - ')).to.have.length(1 + 4096 / 256)
  })
})
