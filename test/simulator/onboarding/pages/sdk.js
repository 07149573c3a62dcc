// Stands in for the platform's JavaScript SDK, as far as embedded signup needs it.
;(() => {
  const { origin } = new URL(document.currentScript.src)
  let appId = ''

  function init(options) {
    appId = options.appId
  }

  function login(callback, { config_id: configId, state = '' }) {
    const query = new URLSearchParams({ app_id: appId, config_id: configId, state, opener: location.origin })
    const dialog = window.open(`${origin}/signup/dialog?${query}`, 'signup', 'popup,width=520,height=680')
    const take = (event) => {
      if (event.origin === origin && event.data?.type === 'SIMULATOR_LOGIN') finish(event.data.code)
    }
    const watch = setInterval(() => {
      if (dialog && !dialog.closed) return
      // What it said last may still be on its way.
      clearInterval(watch)
      setTimeout(finish, 500, null)
    }, 200)
    addEventListener('message', take)
    let isOver = false

    function finish(code) {
      if (isOver) return
      isOver = true
      removeEventListener('message', take)
      clearInterval(watch)
      callback(code ? { status: 'connected', authResponse: { code } } : { status: 'unknown', authResponse: null })
    }
  }

  window.FB = { init, login }
  window.fbAsyncInit?.()
})()
