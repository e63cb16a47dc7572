"""The service's own pages: server-rendered, for control and for machines without Grafana.

    session     user of a browser: a token in a cookie, and protection of forms against other sites
    page        shared by all pages: templates, headers, error pages
    run_pages   the list of runs, one run live, its report
    run_list    the rows of the list of runs
    firing      firing alerts: those of each run, and those that name no run
    run_now     periodic update of a live page, besides its stream: drives, limits, time left
    start       starting a run, with the safety gate's answer before anything is written
    schedules   the list of schedules, and a form for one more
    drives      the machine's drives
    api_page    the operations of the API
    login       logging in and out
    static_files  scripts, style sheets and other files of the pages
    curves      a run's series as columns, and small curves for lists

Pages call the same functions as the API and have no additional rights.
"""
