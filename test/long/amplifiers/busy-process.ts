// Uses a processor and memory, in bursts, until its parent ends.
let isEnded = false
process.once('disconnect', () => (isEnded = true))

function burst(): void {
  const until = performance.now() + 5 + Math.random() * 200
  while (performance.now() < until) Array.from({ length: 10_000 }, (_, i) => ({ i })).sort((a, b) => b.i - a.i)
  if (!isEnded) setTimeout(burst, Math.random() * 50)
}
burst()
