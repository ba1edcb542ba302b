// Compares authentication and authorization of a real kube-apiserver and a logical cluster.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { accessRows } from './access.ts'
import { knownAccessDifferences } from './known-differences.ts'

describe("authentication and authorization equal a real server's", function () {
  this.timeout(60_000)
  compareRows(accessRows, { name: 'access', known: knownAccessDifferences })
})
