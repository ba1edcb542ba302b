// Compares what both servers make of odd values in objects.
import { isLongRun } from '#test/support/index.ts'
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { writtenRows } from './written.ts'

describe("odd values in objects equal a real server's", function () {
  this.timeout(180_000)
  const rows = writtenRows(Number(process.env['KCP_SEED'] ?? 1), isLongRun ? 300 : 25)
  compareRows(rows, { name: 'written', ahead: new Set(rows) })
})
