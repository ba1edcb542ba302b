// A server whose cost is known, to try the measuring itself: POST /EXPONENT with a number as body computes for as long
// as that number to the power of EXPONENT says. Sends its port.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const stepsPerUnit = 1_500_000
/** The cost at this size is the same for all exponents. */
const sameAt = 256

let sum = 0

function compute(units: number): void {
  for (let step = 0; step < units * stepsPerUnit; step++) sum = (sum * 31 + step) % 65_521
}

const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  request.on('end', () => {
    const exponent = Number(request.url?.slice(1))
    compute((Number(text) / sameAt) ** exponent)
    response.end(String(sum))
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
