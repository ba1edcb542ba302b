// Compares ResourceQuotas with those of a real kube-apiserver and kube-controller-manager.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { knownQuotaDifferences } from './known-differences.ts'
import { quotaRows } from './rows.ts'

describe('quotas equal those of a real cluster', function () {
  this.timeout(180_000)
  compareRows(quotaRows, {
    name: 'quotas',
    known: knownQuotaDifferences,
    controllerManager: true,
    ahead: new Set(quotaRows),
  })
})
