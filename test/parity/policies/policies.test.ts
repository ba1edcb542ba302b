// Compares ValidatingAdmissionPolicies on a real kube-apiserver and in a logical cluster.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { knownPolicyDifferences } from './known-differences.ts'
import { matchingRows } from './matching-rows.ts'
import { mutatingRows } from './mutating-rows.ts'
import { paramRightsRows } from './param-rights-rows.ts'
import { policyRows } from './rows.ts'

describe("admission policies equal a real server's", function () {
  this.timeout(180_000)
  compareRows([...policyRows, ...matchingRows, ...mutatingRows, ...paramRightsRows], {
    name: 'policies',
    known: knownPolicyDifferences,
  })
})
