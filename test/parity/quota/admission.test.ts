// Compares the admission plugins with those that kube-apiserver runs by default.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { admissionRows } from './admission-rows.ts'

describe('default admission equals that of a real server', function () {
  this.timeout(120_000)
  compareRows(admissionRows, { name: 'admission' })
})
