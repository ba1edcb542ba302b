// Mocha's spec reporter, which also writes its counts to the file named by KCP_TEST_COUNTS, for scripts/test.ts.
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
    runner.once('end', () => {
      const { passes, failures, pending } = this.stats
      const counts = {
        passed: passes,
        failed: failures,
        skipped: pending,
        skippedNames: skipped,
        failedNames: failed,
        repeatedNames: repeated,
        msOfFile,
        ofFile,
      }
      writeCounts(counts)
      // A server or a process that a failed hook left would keep this process, and whoever waits for it, for ever.
      setTimeout(() => {
        writeCounts({ ...counts, leftOpen: process.getActiveResourcesInfo() })
        process.exit(failures > 0 ? 1 : 0)
      }, msToEnd).unref()
    })
  }
}

function writeCounts(counts) {
  const file = process.env.KCP_TEST_COUNTS
  if (file) writeFileSync(file, JSON.stringify(counts))
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
