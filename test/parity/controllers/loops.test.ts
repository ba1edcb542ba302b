// The loops of kube-controller-manager that every logical cluster has, side by side with the real ones.
import { compareRows } from '../support/compare-rows.ts'
import { knownLoopDifferences } from './known-differences.ts'
import { loopRows } from './loops.ts'

describe('controllers as a real cluster has them', function () {
  this.timeout(120_000)
  compareRows(loopRows, {
    name: 'loops',
    known: knownLoopDifferences,
    controllerManager: true,
    ahead: new Set(loopRows),
  })
})
