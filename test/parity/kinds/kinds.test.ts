// The built-in kinds, created, changed and refused by a real kube-apiserver and by a logical cluster.
import { compareRows } from '../support/compare-rows.ts'
import { coreRows } from './core.ts'
import { networkRows, policyRows, rbacRows, storageRows, workloadRows } from './groups.ts'
import { knownKindDifferences } from './known-differences.ts'

describe('built-in kinds as a real server has them', function () {
  this.timeout(60_000)
  compareRows([...coreRows, ...workloadRows, ...networkRows, ...policyRows, ...storageRows, ...rbacRows], {
    name: 'kinds',
    known: knownKindDifferences,
  })
})
