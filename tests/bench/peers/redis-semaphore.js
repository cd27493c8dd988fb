// SPDX-License-Identifier: MIT
// The npm package redis-semaphore in the situations of the bench. NODE_PATH names where it is installed.
//   pairs SOCKET DEPTH PAIRS     prints pairs a second, DEPTH of them in flight on one connection
//   handover SOCKET SAMPLES      ten wait for one permit, polling (every 10 ms, the default); prints µs from release to the next
const { Semaphore } = require('redis-semaphore')
const Redis = require('ioredis')

async function pairs(redis, depth, count) {
    let left = count
    const worker = async () => {
        while (left-- > 0) {
            const semaphore = new Semaphore(redis, 'bench', 1000000, { refreshInterval: 0 })
            await semaphore.acquire()
            await semaphore.release()
        }
    }
    const round = async () => {
        const began = process.hrtime.bigint()
        await Promise.all(Array.from({ length: depth }, worker))
        return Number(process.hrtime.bigint() - began) / 1e9
    }
    await round() // the compiler of Node has seen it then
    left = count
    console.log(Math.round(count / (await round())))
}

async function handover(redis, samples) {
    let released = 0n
    let left = samples
    const took = []
    const worker = async () => {
        while (left > 0) {
            const semaphore = new Semaphore(redis, 'one', 1, { refreshInterval: 0, acquireTimeout: 60000 })
            await semaphore.acquire()
            if (released) took.push(Number(process.hrtime.bigint() - released) / 1e3)
            left--
            await new Promise((resolve) => setTimeout(resolve, 15))
            released = process.hrtime.bigint()
            await semaphore.release()
        }
    }
    await Promise.all(Array.from({ length: 11 }, worker))
    console.log(took.join('\n'))
}

async function main() {
    const [what, socket, ...numbers] = process.argv.slice(2)
    const redis = new Redis({ path: socket })
    await (what === 'pairs' ? pairs : handover)(redis, ...numbers.map(Number))
    redis.disconnect()
}

main().catch((error) => {
    console.error(error.message)
    process.exit(1)
})
