// Every command block of the documents, page by page, as a reader types them.
import { expect } from 'chai'
import { commandBlocks } from '#scripts/documents/command-blocks.ts'
import { documentPaths, readDocument } from '#scripts/documents/documents.ts'
import { runPage } from './run-page.ts'

const timeoutMs = 150_000

describe('the commands of', function () {
  this.timeout(timeoutMs + 30_000)

  for (const path of documentPaths()) {
    const blocks = commandBlocks(readDocument(path))
    if (!blocks.some(({ kind, notRun }) => kind === 'commands' && notRun === undefined)) continue
    it(`${path} work as they are written`, async () => {
      const { code, lastLine, output } = await runPage(blocks, timeoutMs)
      expect(code, `${path}:${lastLine}\n${output}`).to.equal(0)
    })
  }
})
