// Compares a real kube-apiserver and a logical cluster while the versions of definitions change.
import { isLongRun } from '#test/support/index.ts'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { versionChangeRows } from './version-changes.ts'

const firstSeed = Number(process.env['KCP_SEED'] ?? 1)

describe("changes of a definition's versions equal a real server's", function () {
  this.timeout(isLongRun ? 1_800_000 : 180_000)
  let server: WebhookServer
  before(async () => {
    server = await startWebhookServer()
  })
  after(() => server[Symbol.asyncDispose]())
  const rows = versionChangeRows({ firstSeed, count: isLongRun ? 60 : 3, steps: 30 }, () => server)
  compareRows(rows, { name: 'versions', ourFlags: ['--egress-allow', '127.0.0.0/8'], ahead: new Set(rows) })
})
