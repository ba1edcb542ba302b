// Compares admission webhooks of a real kube-apiserver and of a logical cluster: both call the same webhook server.
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { knownWebhookDifferences } from './known-differences.ts'
import { webhookRows } from './rows.ts'

describe("admission webhooks equal a real server's", function () {
  this.timeout(120_000)
  let server: WebhookServer
  before(async () => {
    server = await startWebhookServer()
  })
  after(() => server[Symbol.asyncDispose]())
  compareRows(
    webhookRows(() => server),
    {
      name: 'webhooks',
      known: knownWebhookDifferences,
      ourFlags: ['--egress-allow', '127.0.0.0/8'],
    },
  )
})
