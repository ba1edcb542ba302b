// Identity and rights, asked of a real kube-apiserver and of a logical cluster.
import { compareRows } from '../support/compare-rows.ts'
import { accessRows } from './access.ts'
import { knownAccessDifferences } from './known-differences.ts'

describe('access as a real server gives it', function () {
  this.timeout(60_000)
  compareRows(accessRows, { name: 'access', known: knownAccessDifferences })
})
