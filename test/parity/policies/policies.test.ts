// Compares ValidatingAdmissionPolicies on a real kube-apiserver and in a logical cluster.
import { compareRows } from '../support/compare-rows.ts'
import { knownPolicyDifferences } from './known-differences.ts'
import { policyRows } from './rows.ts'

describe("admission policies equal a real server's", function () {
  this.timeout(180_000)
  compareRows(policyRows, { name: 'policies', known: knownPolicyDifferences })
})
