// Tells the stories to a server as tests: what is defined is refused or served, and holds up nobody for long. Prints
// the numbers of docs/benchmarks.md.
import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { startSubject, type Subject } from '#test/long/amplifiers/subject.ts'
import { stories } from './stories.ts'
import { rowOf, tellStory } from './tell-story.ts'

/** Processor time of a pass of the event loop that nobody is to exceed, milliseconds. */
const longestPassMs = 250

/** Declares a suite of the stories whose titles match. */
export function describeStories(only: RegExp): void {
  describe('definitions of a hostile tenant', function () {
    this.timeout(1_200_000)
    declareStories(only)
  })
}

function declareStories(only: RegExp): void {
  const dir = mkdtempSync(join(tmpdir(), 'kcp-hostile-definitions-'))
  const passFile = join(dir, 'passes')
  let hooks: WebhookServer
  let subject: Subject

  before(async () => {
    hooks = await startWebhookServer()
    const probe = pathToFileURL(join(import.meta.dirname, 'pass-probe.ts')).href
    subject = await startSubject(['--egress-allow', '127.0.0.0/8'], {
      NODE_OPTIONS: `--import=${probe}`,
      KCP_PASS_PROBE: passFile,
    })
  })
  after(async () => {
    await subject[Symbol.asyncDispose]()
    await hooks[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  for (const [index, { title }] of stories(() => ({})).entries()) {
    if (!only.test(title)) continue
    it(title, async () => {
      const story = stories((path) => hooks.at(path))[index]
      expect(story).to.not.equal(undefined)
      if (story === undefined) return
      const told = await tellStory(subject, story, passFile)
      process.stderr.write(`${rowOf(told)}\n`)
      expect(told.unexpected).to.deep.equal([])
      expect(told.longestPassMs, 'processor time of the longest pass').to.be.lessThan(longestPassMs)
    })
  }
}
