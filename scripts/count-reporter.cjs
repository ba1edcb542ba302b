// Mocha's spec reporter, which also writes its counts to the file named by KCP_TEST_COUNTS, for scripts/test.ts. It writes
// them after each file of tests, and the title of each test or hook that begins beside them: a process may crash.
'use strict'
const { writeFileSync } = require('node:fs')
const { reporters } = require('mocha')

/** How long the process may take to end after its last test. */
const msToEnd = 60_000

module.exports = class CountReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    const skipped = []
    const failed = []
    const repeated = []
    const msOfFile = {}
    const ofFile = {}
    // By file: how many of its suites have not ended.
    const unfinished = new Map()
    for (const { file } of runner.suite.suites) unfinished.set(file, (unfinished.get(file) ?? 0) + 1)
    const count = (test, part) => {
      const file = test.file ?? test.parent?.file ?? 'unknown'
      ofFile[file] ??= { passed: 0, failed: 0, skipped: 0 }
      ofFile[file][part] += 1
    }
    let last = Date.now()
    // Hooks count too, so a test takes what went by since the end of the one before it.
    runner.on('test end', (test) => {
      const now = Date.now()
      const file = test.file ?? 'unknown'
      msOfFile[file] = (msOfFile[file] ?? 0) + now - last
      last = now
    })
    for (const event of ['test', 'hook'])
      runner.on(event, (begun) => write('.running', `${begun.file ?? ''} ${begun.fullTitle()}`))
    const writeUnfinished = () => writeCounts({ ...counts(), unfinished: [...unfinished.keys()] })
    runner.once('start', writeUnfinished)
    runner.on('suite end', ({ file, parent }) => {
      if (!parent?.root) return
      const left = unfinished.get(file) - 1
      if (left > 0) unfinished.set(file, left)
      else unfinished.delete(file)
      writeUnfinished()
    })
    runner.on('pass', (test) => count(test, 'passed'))
    runner.on('pending', (test) => {
      count(test, 'skipped')
      skipped.push(test.fullTitle())
    })
    runner.on('fail', (test, error) => {
      count(test, 'failed')
      failed.push(`${test.fullTitle()}: ${firstLines(error)}`)
    })
    // A test that fails once and passes then has a defect, or what it tests has: it is told, with what was wrong.
    runner.on('retry', (test, error) => repeated.push(`${test.fullTitle()}: ${firstLines(error)}`))
    const counts = () => {
      const { passes, failures, pending } = this.stats
      return {
        passed: passes,
        failed: failures,
        skipped: pending,
        skippedNames: skipped,
        failedNames: failed,
        repeatedNames: repeated,
        msOfFile,
        ofFile,
      }
    }
    runner.once('end', () => {
      writeCounts(counts())
      // A server or a process that a failed hook left would keep this process, and whoever waits for it, for ever.
      setTimeout(() => {
        writeCounts({ ...counts(), leftOpen: process.getActiveResourcesInfo() })
        process.exit(this.stats.failures > 0 ? 1 : 0)
      }, msToEnd).unref()
    })
  }
}

function writeCounts(counts) {
  write('', JSON.stringify(counts))
}

function write(suffix, text) {
  const file = process.env.KCP_TEST_COUNTS
  if (file) writeFileSync(`${file}${suffix}`, text)
}

function firstLines(error) {
  const message = String(error?.message ?? error)
    .slice(0, 400)
    .split('\n')
    .slice(0, 3)
    .join(' | ')
  // The assertion shortens a list to its length: what was found says more.
  return message.includes('…') ? `${message}: ${JSON.stringify(error.actual)?.slice(0, 1500)}` : message
}
