// Compares validation rules on a real kube-apiserver and in a logical cluster.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { knownRuleDifferences } from './known-differences.ts'
import { ruleRows } from './rules.ts'

describe("validation rules equal a real server's", function () {
  this.timeout(180_000)
  compareRows(ruleRows, { name: 'rules', known: knownRuleDifferences })
})
