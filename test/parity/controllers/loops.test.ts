// Compares the controllers that every logical cluster has with those of kube-controller-manager.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { knownLoopDifferences } from './known-differences.ts'
import { loopRows } from './loops.ts'

describe('controllers equal those of a real cluster', function () {
  this.timeout(120_000)
  compareRows(loopRows, {
    name: 'loops',
    known: knownLoopDifferences,
    controllerManager: true,
    ahead: new Set(loopRows),
  })
})
